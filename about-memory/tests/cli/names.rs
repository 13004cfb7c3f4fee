//! Compares the output of the old names of commands with the output of the new ones.

use std::process::Output;

use super::folder::Folder;

const REPORT: &str = r#"{"version": 1, "hasMozMallocUsableSize": true, "reports": [
    {"process": "", "path": "explicit/a", "kind": 1, "units": 0, "amount": 5, "description": "A."},
    {"process": "", "path": "resident", "kind": 2, "units": 0, "amount": 9, "description": "R."}]}"#;

const DUMP: &str = r##"{"version": 5, "invocation": {"dmdEnvVar": "1", "mode": "dark-matter"},
    "blockList": [{"req": 4000, "slop": 96, "alloc": "L"}, {"req": 500, "alloc": "M", "reps": ["R"]}],
    "traceTable": {"L": ["l", "m"], "M": ["m"], "R": ["r"]},
    "frameTable": {"l": "#00: shop::load (src/main.rs:12)", "m": "#00: shop::main (src/main.rs:40)",
      "r": "#00: explicit/shop"}}"##;

/// The commands that start programs, are for processes, and are about a fleet.
const OF_PROGRAMS: (&str, &str, &str) = if cfg!(unix) {
    (
        "run, record, preload, ",
        "ps, top, snapshot, minimize, track, attach, inspect, log, call",
        "agent, fleet, ",
    )
} else {
    ("", "inspect", "")
};

#[test]
fn the_old_names_are_hidden_aliases() {
    let scan = DUMP.replace("dark-matter", "scan").replace(r#"{"req""#, r#"{"addr":"1000","req""#);
    let folder =
        Folder::new().with("report.json", REPORT).with("dump.json", DUMP).with("scan.json", scan);
    let run = |words: &str| -> Output { folder.run(&words.split(' ').collect::<Vec<_>>()) };
    for (old, new) in [
        ("report.json", "show report.json"),
        ("resident report.json", "explain-rss report.json"),
        ("html report.json -o /dev/stdout", "page build report.json -o /dev/stdout"),
        ("serve no-such-file", "page serve no-such-file"),
        ("heap dump.json --by type", "heap tree dump.json --by type"),
        ("heap-diff dump.json dump.json", "heap diff dump.json dump.json"),
        ("census dump.json", "heap census dump.json"),
        ("coverage dump.json", "heap coverage dump.json"),
        ("retained scan.json", "heap dominators scan.json"),
        ("held scan.json --block 1000", "heap why-alive scan.json --block 1000"),
        ("dmd dump.json --by type", "heap records dump.json --by type"),
        ("ask 4294967295", "call 4294967295"),
        ("live 4294967295", "top 4294967295"),
        ("ps --patience 1 --folder .", "ps --timeout 1 --folder ."),
    ] {
        assert_eq!(run(old), run(new), "{old}");
    }
    let help = String::from_utf8(run("--help").stdout).unwrap();
    let names: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "View:")
        .take_while(|line| *line != "Arguments:")
        .filter_map(|line| line.strip_prefix("  ")?.split("  ").next())
        .collect();
    let (launch, process, fleet) = OF_PROGRAMS;
    assert_eq!(
        names.join(", "),
        format!(
            "show, diff, tree, annotate, recording, explain-rss, page open, page build, page serve, {launch}{process}, heap tree, \
             heap diff, heap census, heap coverage, heap dominators, heap why-alive, heap records, export, metrics, \
             symbolicate, check, {fleet}completions, man, help"
        )
    );
}
