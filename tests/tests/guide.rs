//! The documents hold: their command blocks run, named commands exist, and links lead somewhere.
//!
//! A block of ```` ```console ```` has commands in lines that begin with `$ `. The other lines are
//! output, which is not compared. A block that cannot run in a test is marked in its fence, as
//! ```` ```console,not-run: needs a browser ````. Its commands and options must exist all the same.
//! A command that fails on purpose ends in `# exit status N`.

#[path = "guide/document.rs"]
mod document;
#[path = "guide/schemas.rs"]
mod schemas;
#[path = "guide/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use document::{Block, Document, all, root};
use world::{Fixtures, World};

/// The documents whose commands are checked, and the guide's chapters in particular.
fn chapters() -> Vec<Document> {
    all(&["README.md", "docs/guide/src"])
}

/// Runs the commands of a chapter, in their order, and collects what went wrong.
fn run_chapter(chapter: &Document, fixtures: &Fixtures, failures: &Mutex<Vec<String>>) -> usize {
    let blocks: Vec<Block> = chapter.blocks().filter(|block| block.not_run.is_none()).collect();
    if blocks.is_empty() {
        return 0;
    }
    let mut world = World::new(fixtures, &chapter.name);
    let mut ran = 0;
    for block in &blocks {
        for command in &block.commands {
            ran += 1;
            if let Err(why) = world.run(command) {
                let line = format!("{}:{}: $ {}\n{why}", chapter.name, block.line, command.text);
                failures.lock().expect("nobody panics").push(line);
            }
        }
    }
    ran
}

#[test]
#[ignore = "slow: `cargo xtask ci` runs it"]
fn every_command_block_runs() {
    let chapters = chapters();
    let fixtures = Fixtures::make();
    let (next, ran) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failures = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(4);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(chapter) = chapters.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let count = run_chapter(chapter, &fixtures, &failures);
                    ran.fetch_add(count, Ordering::Relaxed);
                }
            });
        }
    });
    let mut not_run = String::new();
    for (chapter, block) in chapters.iter().flat_map(|one| one.blocks().map(move |it| (one, it))) {
        if let Some(reason) = &block.not_run {
            let _ = writeln!(not_run, "not run: {}:{}: {reason}", chapter.name, block.line);
        }
    }
    let ran = ran.into_inner();
    println!("{ran} commands ran\n{not_run}{} blocks not run", not_run.lines().count());
    let failures = failures.into_inner().expect("nobody panics");
    let hint = "if about-memory is older than its source, build it: cargo build -p about-memory";
    assert!(
        failures.is_empty(),
        "{} of {ran} fail ({hint}):\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(ran > 60, "only {ran} commands were found");
}

#[test]
fn every_command_that_is_named_exists_with_its_options() {
    let documents = all(&["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "docs"]);
    let fixtures = Fixtures::program_only();
    let mut helps = BTreeMap::new();
    let mut missing = Vec::new();
    let mut named = 0;
    for document in &documents {
        let blocks: Vec<Block> = document.blocks().collect();
        let in_blocks = blocks.iter().flat_map(|block| &block.commands);
        let in_text = document.spans();
        for text in in_blocks.map(|command| command.text.clone()).chain(in_text) {
            for call in document::calls(&text) {
                named += 1;
                if let Err(why) = world::exists(&call, &fixtures, &mut helps) {
                    missing.push(format!("{}: `{text}`: {why}", document.name));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(named > 100, "only {named} commands were found");
}

#[test]
fn links_lead_to_files_and_headings() {
    let names =
        ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md", "docs"];
    let mut broken = Vec::new();
    for document in all(&names) {
        for link in document.links() {
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target: PathBuf = match file {
                "" => document.path.clone(),
                file => document.path.parent().unwrap_or(Path::new("")).join(file),
            };
            let has_heading = || {
                let text = fs::read_to_string(&target).unwrap_or_default();
                heading.is_empty() || document::headings(&text).any(|known| known == heading)
            };
            if !target.exists() || !has_heading() {
                broken.push(format!("{}: {link}", document.name));
            }
        }
    }
    assert_eq!(broken, [""; 0]);
}

#[test]
fn every_chapter_is_in_the_contents_and_its_examples_are_tests() {
    let contents =
        fs::read_to_string(root().join("docs/guide/src/SUMMARY.md")).expect("it is there");
    let examples = fs::read_to_string(root().join("tests/src/lib.rs")).expect("it is there");
    for chapter in chapters() {
        let Some(name) = chapter.name.strip_prefix("docs/guide/src/") else { continue };
        if name != "SUMMARY.md" {
            assert!(contents.contains(&format!("({name})")), "{name} is not in SUMMARY.md");
            assert!(examples.contains(&chapter.name), "{name} is not in tests/src/lib.rs");
        }
    }
}

#[test]
fn the_readme_is_one_page() {
    let readme = fs::read_to_string(root().join("README.md")).expect("it is there");
    assert!(readme.lines().count() <= 150, "{} lines", readme.lines().count());
}

#[test]
fn the_map_names_files_and_tests_that_exist() {
    let sources = document::sources();
    let mut missing = Vec::new();
    for document in all(&["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/design"]) {
        for span in document.spans() {
            let is_path = document::is_path(&span);
            let paths = if is_path { document::expanded(&span) } else { Vec::new() };
            missing.extend(paths.into_iter().filter(|path| !root().join(path).exists()));
            if let Some(name) = document::test_name(&span) {
                let is_there = sources.iter().any(|text| text.contains(&format!("fn {name}(")));
                missing.extend((!is_there).then(|| format!("fn {name}")));
            }
        }
    }
    assert_eq!(missing, [""; 0]);
}
