//! Tests that `about-memory resident` finds the reason of a known growth in a program's snapshots.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use about_memory::input::open;
use about_memory::report::resident::{Cause, Explanation, ProcessSnapshots};
use about_memory::{Cli, Context};
use clap::Parser;
use memreport::snapshot::read::Options;

/// The files of the program, and the explanation of its growth.
struct Grown {
    page: Explanation,
    folder: PathBuf,
}

fn run(program: &str, reason: &str, dmd: Option<&str>) -> Grown {
    let name = Path::new(program).file_name().expect("a program").to_string_lossy();
    let awake = if dmd.is_some() { "awake" } else { "asleep" };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{reason}-{awake}"));
    // An interrupted run may have left files.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the target folder is ours");
    let mut command = Command::new(program);
    command.arg(reason).arg(&folder).env_remove("DMD").envs(dmd.map(|dmd| ("DMD", dmd)));
    let output = command.output().expect("cargo has built it");
    assert!(output.status.success(), "{reason}: {output:?}");
    let files = (1..).map(|number| folder.join(format!("{number}.json")));
    let moments = files.take_while(|file| file.exists()).map(|file| {
        let mut moments = ProcessSnapshots::default();
        let header = open::read(&file, Options::default(), &mut moments).expect("it is a report");
        moments.choose(None, &header).expect("it is of a process")
    });
    Grown { page: Explanation::new(moments.collect()), folder }
}

impl Grown {
    #[track_caller]
    fn assert_is(self, cause: Cause, words: &str) {
        let Grown { page, folder } = self;
        assert_eq!(page.verdict.cause, cause, "{}", page.verdict.sentence);
        assert!(page.verdict.sentence.contains(words), "{}", page.verdict.sentence);
        assert_eq!(page.notes, [""; 0]);
        for sum in &page.sums {
            let parts: i64 = sum.parts.iter().map(|(line, _)| line.bytes).sum();
            assert_eq!(parts, sum.whole.0.bytes, "{} {}", sum.whole.0.name, sum.by);
            let rest = sum.parts.iter().find(|(line, _)| line.name == "not explained");
            let rest = rest.map_or(0, |(line, _)| line.bytes.abs());
            // The system's figures are read one after the other, and between two readings a huge
            // page may come or go.
            assert!(rest < 4 << 20, "{rest} bytes of {} are not explained", sum.whole.0.name);
        }
        fs::remove_dir_all(folder).expect("it is ours");
    }
}

/// Returns the output of the command for a folder of snapshots.
fn printed(folder: &Path, more: &[&str]) -> String {
    let folder = folder.to_string_lossy();
    let words = ["about-memory", "resident", &folder].into_iter().chain(more.iter().copied());
    let cli = Cli::parse_from(words);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    cli.run(&mut Context::new(&mut out, &mut err)).expect("the files can be read");
    assert!(err.is_empty(), "{}", String::from_utf8_lossy(&err));
    String::from_utf8(out).expect("it is text")
}

fn every_reason_is_found(program: &str) {
    let table = [
        ("leak", Cause::DarkMatter, "dark matter grew by 48."),
        ("cache", Cause::Reported, "explicit/cache grew by 48."),
        ("retention", Cause::Retained, "the allocator retains"),
        ("files", Cause::Files, "mapped files grew by 48."),
        ("quiet", Cause::NothingUnusual, "nothing unusual"),
    ];
    for (reason, cause, words) in table {
        run(program, reason, None).assert_is(cause, words);
    }
}

#[test]
fn on_the_systems_allocator() {
    every_reason_is_found(env!("CARGO_BIN_EXE_growth"));
}

#[test]
fn on_the_systems_allocator_under_dmd() {
    let program = env!("CARGO_BIN_EXE_growth");
    let grown = run(program, "leak", Some("1"));
    let text = printed(&grown.folder, &[]);
    // Dumps are beside the snapshots, and are not read as snapshots.
    for words in [
        "3 snapshots over ",
        "dark matter grew by 48.",
        "--explain",
        "+ slop of unreported blocks ",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let html = printed(&grown.folder, &["--html"]);
    assert!(html.starts_with("<section") && html.contains("<p class=\"verdict dark-matter\">"));
    grown.assert_is(Cause::DarkMatter, "dark matter grew by 48.");
    run(program, "retention", Some("1")).assert_is(Cause::Retained, "after a peak of");
}

#[cfg(feature = "jemalloc")]
#[test]
fn on_jemalloc() {
    every_reason_is_found(env!("CARGO_BIN_EXE_growth-jemalloc"));
}

#[cfg(feature = "mimalloc")]
#[test]
fn on_mimalloc() {
    every_reason_is_found(env!("CARGO_BIN_EXE_growth-mimalloc"));
}
