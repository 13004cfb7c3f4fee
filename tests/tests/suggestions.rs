//! Tests the suggestion for each kind of fault in a program.

use std::path::{Path, PathBuf};
use std::process::Command;

use memreport_analysis::analysis::{
    Class, ExplainOptions, Explained, Place, explain, pointing_types,
};
use memreport_analysis::read::read_file;
use memreport_analysis::symbols::Symboliser;

/// Runs the command with a report to save, and explains the dump beside it.
fn explained(name: &str, command: &mut Command, mode: &str) -> Explained {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("remedies");
    std::fs::create_dir_all(&folder).expect("the target folder is ours");
    let report: PathBuf = folder.join(format!("{name}.json"));
    let output = command.arg(&report).env("DMD", mode).output().expect("cargo has built it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut dump = read_file(&dmd::dump::beside(&report)).expect("the dump is there, and good");
    let mut symboliser = Symboliser::default();
    symboliser.symbolicate(&mut dump);
    let mut options = ExplainOptions::default();
    options.members = symboliser.members(&dump, &pointing_types(&dump, &options));
    explain(&dump, &options)
}

fn subject(case: &str) -> Explained {
    explained(case, Command::new(env!("CARGO_BIN_EXE_remedies")).arg(case), "1")
}

/// Returns the site whose blocks have this many requested bytes each.
fn place(explained: &Explained, class: Class, req: i128) -> &Place {
    let places = explained.places(class);
    let found = places.iter().find(|place| place.totals.req == req * place.totals.blocks);
    found.unwrap_or_else(|| panic!("no block of {req} bytes in {places:#?}"))
}

/// Returns the number of the subject's source line with this beginning, from 1.
fn line(begin: &str) -> usize {
    let source = include_str!("../src/bin/remedies.rs");
    let at = source.lines().position(|line| line.trim_start().starts_with(begin));
    at.expect("the source has it") + 1
}

#[test]
fn a_dark_block_is_told_with_what_to_do() {
    let skipped = format!(
        "field remedies::Catalogue.cache is skipped at tests/src/bin/remedies.rs:{} (\"made again when needed\")",
        line("cache: Vec<Vec")
    );
    let table = [
        // The blocks that a skipped field or a static points at, and those behind these.
        ("skipped", 24 * 3, &*skipped),
        ("skipped", 777, &*format!("perhaps {skipped}")),
        ("static", 24 * 5, "no reporter reaches static remedies::CACHE: register one"),
        ("static", 888, "perhaps no reporter reaches static remedies::CACHE: register one"),
        (
            "by-hand",
            999,
            "measured by hand: the reporter of static remedies::PARTLY does not visit all it holds",
        ),
        (
            "derive",
            1111,
            "perhaps derive MallocSizeOf for remedies::Tree: no field of it was measured",
        ),
        (
            "register",
            1248,
            "perhaps register a reporter for what owns them: remedies::Page can be measured",
        ),
    ];
    for (case, req, expected) in table {
        let explained = subject(case);
        let place = place(&explained, Class::Unreported, req);
        assert_eq!(place.suggestion.as_deref(), Some(expected), "{case}: {place:#?}");
    }
    // The crate's types are measured in this build already.
    let of_crate = subject("feature");
    assert_eq!(place(&of_crate, Class::Unreported, 4096).suggestion, None);
}

#[test]
fn a_scan_tells_more() {
    let scan = |case| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_remedies"));
        explained(&format!("scan-{case}"), command.arg(case), "--mode=scan")
    };
    assert_eq!(
        place(&scan("static"), Class::Unreported, 888).suggestion.as_deref(),
        Some("perhaps no reporter reaches static remedies::CACHE: register one")
    );
    // Only the contents of a reported block reveal its pointers to unreported ones.
    let boxed = scan("boxed");
    assert_eq!(
        place(&boxed, Class::Unreported, 999).suggestion.as_deref(),
        Some("measured by hand: remedies::Partly's impl does not visit .cache")
    );
}

#[test]
fn a_block_that_is_counted_twice_is_told_with_who_should_not() {
    let table = [
        (
            "shared",
            1352,
            "#[malloc_size_of(shared = elsewhere)] on remedies::View.page: remedies::Store.pages counts it",
        ),
        (
            "twice",
            55,
            "explicit/names and explicit/index both come to remedies::Page.text: leave it out of one",
        ),
    ];
    for (case, req, expected) in table {
        let explained = subject(case);
        let place = place(&explained, Class::TwiceReported, req);
        assert_eq!(place.suggestion.as_deref(), Some(expected), "{case}: {place:#?}");
    }
}

#[test]
fn planted_faults_are_told_with_their_remedies() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fulltext"));
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../memreport"));
    for fault in ["unreported", "double", "non-heap", "interior", "partial"] {
        command.args(["--plant", fault]);
    }
    let explained = explained("planted", command.arg("--snapshot"), "1");
    let first = |class| explained.places(class)[0].suggestion.as_deref();
    assert_eq!(
        first(Class::Unreported),
        Some("no reporter reaches static fulltext::faults::SIMILAR: register one")
    );
    assert_eq!(
        first(Class::TwiceReported),
        Some(
            "explicit/fulltext/catalogue counts by hand what fulltext::documents::Document.path owns: leave it out there"
        )
    );
    let wrong: Vec<_> =
        explained.wrong.iter().map(|wrong| wrong.suggestion.as_deref().unwrap_or("none")).collect();
    let claimed = explained.wrong[2].claimed;
    let of_log = format!(
        "explicit/fulltext/log claims {claimed} bytes of a block made with 16,384: give Ops::block the layout that it was made with"
    );
    assert_eq!(
        wrong,
        [
            "explicit/fulltext/default-configuration takes bytes of the program's file for a heap block: leave them out, or \
             report them with Report::non_heap",
            "explicit/fulltext/recent-documents claims a part of the block that fulltext::index::Index.documents reports: \
             leave it out",
            &*of_log,
        ]
    );
}

#[test]
fn a_remedy_for_some_blocks_of_a_place_says_for_how_many() {
    let explained = subject("half");
    let place = place(&explained, Class::Unreported, 4321);
    assert_eq!(
        place.suggestion.as_deref(),
        Some(
            "perhaps no reporter reaches static remedies::NAMES: register one (1 of the 2 blocks)"
        )
    );
}
