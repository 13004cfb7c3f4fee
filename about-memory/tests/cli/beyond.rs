//! Tests the text of options beyond Firefox's page, and of differences between two files.

use super::folder::{Folder, show};

#[test]
fn only_so_many_levels_are_shown() {
    let files = [
        r##"{"process": "P", "path": "t/a/b", "kind": 2, "units": 0, "amount": 5, "description": "About t/a/b."},
        {"process": "P", "path": "t/a/c/d", "kind": 2, "units": 0, "amount": 6, "description": "About t/a/c/d."},
        {"process": "P", "path": "t/a/c/e", "kind": 2, "units": 0, "amount": 6, "description": "About t/a/c/e."},
        {"process": "P", "path": "t/f", "kind": 2, "units": 0, "amount": 7, "description": "About t/f."}"##,
    ];
    let text = show(&files, &["-v", "--depth", "2"]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0 B
P
Other Measurements

24 B (100.0%) -- t
├──17 B (70.83%) ++ a
└───7 B (29.17%) ── f

End of P
"##
    );
}

#[test]
fn a_least_amount_gathers_what_is_smaller() {
    let files = [
        r##"{"process": "P", "path": "t/a", "kind": 2, "units": 0, "amount": 5000, "description": "About t/a."},
        {"process": "P", "path": "t/b", "kind": 2, "units": 0, "amount": 900, "description": "About t/b."},
        {"process": "P", "path": "t/c", "kind": 2, "units": 0, "amount": 800, "description": "About t/c."}"##,
    ];
    let text = show(&files, &["-v", "--min", "1K"]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0 B
P
Other Measurements

6,700 B (100.0%) -- t
├──5,000 B (74.63%) ── a
└──1,700 B (25.37%) ++ (2 tiny)

End of P
"##
    );
}

#[test]
fn reporters_of_the_program_are_never_gathered() {
    let folder = Folder::new();
    folder.write(
        "one.json",
        r#"{"version": 1, "hasMozMallocUsableSize": true,
        "memreport": {"version": 1, "reporters": ["t/own", "t/deep/own", "t/not-there/at-all"]},
        "reports": [
        {"process": "P", "path": "t/large", "kind": 2, "units": 0, "amount": 1000, "description": "A."},
        {"process": "P", "path": "t/own/a", "kind": 2, "units": 0, "amount": 5, "description": "A."},
        {"process": "P", "path": "t/own/b", "kind": 2, "units": 0, "amount": 4, "description": "A."},
        {"process": "P", "path": "t/deep/own", "kind": 2, "units": 0, "amount": 3, "description": "A."},
        {"process": "P", "path": "t/deep/other", "kind": 2, "units": 0, "amount": 2, "description": "A."},
        {"process": "P", "path": "t/foreign/a", "kind": 2, "units": 0, "amount": 2, "description": "A."},
        {"process": "P", "path": "t/foreign/b", "kind": 2, "units": 0, "amount": 1, "description": "A."},
        {"process": "P", "path": "t/foreign2", "kind": 2, "units": 0, "amount": 1, "description": "A."}
        ]}"#,
    );
    let text = folder.text(&["one.json", "--units", "bytes"]);
    assert!(
        text.contains(
            "
1,018 B (100.0%) -- t
├──1,000 B (98.23%) ── large
├──────9 B (00.88%) ++ own
├──────5 B (00.49%) -- deep
│      ├──3 B (00.29%) ── own
│      └──2 B (00.20%) ── other
└──────4 B (00.39%) ++ (2 tiny)
"
        ),
        "{text}"
    );
    // A chosen limit applies to all.
    let text = folder.text(&["one.json", "--units", "bytes", "--min", "1%"]);
    assert!(text.contains("└─────18 B (01.77%) ++ (4 tiny)"), "{text}");
}

#[test]
fn at_most_sixteen_tiny_reporters_of_a_node_are_shown_in_each_process() {
    let folder = Folder::new();
    let paths: Vec<String> = (0..20).map(|number| format!("t/{number}")).collect();
    let report = |process: &str, path: &str, amount: u32| {
        format!(
            r#"{{"process": "{process}", "path": "{path}", "kind": 2, "units": 0, "amount": {amount}, "description": "A."}}"#
        )
    };
    let mut reports = Vec::new();
    for process in ["P", "Q"] {
        reports.push(report(process, "t/large", 100_000));
        reports.extend((1..).zip(&paths).map(|(amount, path)| report(process, path, amount)));
    }
    folder.write(
        "one.json",
        format!(
            r#"{{"version": 1, "hasMozMallocUsableSize": true,
            "memreport": {{"version": 1, "reporters": {paths:?}}}, "reports": [{}]}}"#,
            reports.join(",")
        ),
    );
    let text = folder.text(&["one.json", "--units", "bytes"]);
    // The smallest four: 1 + 2 + 3 + 4.
    assert_eq!(text.matches("10 B (00.01%) ++ (4 tiny)").count(), 2, "{text}");
    assert_eq!(text.lines().filter(|line| line.contains("── ")).count(), 2 * 17, "{text}");
}

#[test]
fn kids_sort_by_name_where_asked() {
    let files = [
        r##"{"process": "P", "path": "t/a", "kind": 2, "units": 0, "amount": 5, "description": "About t/a."},
        {"process": "P", "path": "t/b", "kind": 2, "units": 0, "amount": 6, "description": "About t/b."},
        {"process": "P", "path": "t/c", "kind": 2, "units": 0, "amount": 7, "description": "About t/c."}"##,
    ];
    let text = show(&files, &["-v", "--sort", "name"]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0 B
P
Other Measurements

18 B (100.0%) -- t
├───5 B (27.78%) ── a
├───6 B (33.33%) ── b
└───7 B (38.89%) ── c

End of P
"##
    );
}

#[test]
fn descriptions_stand_below_their_paths() {
    let files = [
        r##"{"process": "P", "path": "t/a", "kind": 2, "units": 0, "amount": 5242880, "description": "About t/a."},
        {"process": "P", "path": "t/b/c", "kind": 2, "units": 0, "amount": 6291456, "description": "About t/b/c."},
        {"process": "P", "path": "f", "kind": 2, "units": 0, "amount": 7, "description": "About f."}"##,
    ];
    let text = show(&files, &["--descriptions"]);
    assert_eq!(
        text,
        r##"P

t/b/c = 6.00 MB
    About t/b/c.
t/a = 5.00 MB
    About t/a.
f = 0.00 MB
    About f.

"##
    );
}

#[test]
fn json_is_for_scripts() {
    let files = [
        r##"{"process": "P", "path": "t/a", "kind": 2, "units": 0, "amount": 5, "description": "About t/a."},
        {"process": "P", "path": "t/large", "kind": 2, "units": 0, "amount": 5000, "description": "About t/large."},
        {"process": "P", "path": "t/b/c", "kind": 2, "units": 0, "amount": 6, "description": "About t/b/c."},
        {"process": "P", "path": "t/b/c", "kind": 2, "units": 0, "amount": 6, "description": "About t/b/c."},
        {"process": "P", "path": "f", "kind": 2, "units": 0, "amount": -7, "description": "About f."}"##,
    ];
    let text = show(&files, &["--json"]);
    assert_eq!(
        text,
        r##"{"version":1,"notes":[],"processes":[
{"name":"P","warnings":[],"invalid":[],"trees":[
{"name":"t","amount":5017,"value":"0.00 MB","share":"100.0%","unit":"bytes","kids":[{"name":"large","amount":5000,"value":"0.00 MB","share":"99.66%","description":"About t/large."},{"name":"b/c","amount":12,"value":"0.00 MB","share":"00.24%","reports":2,"description":"About t/b/c."},{"name":"a","amount":5,"value":"0.00 MB","share":"00.10%","description":"About t/a."}]},
{"name":"f","amount":-7,"value":"-0.00 MB","unit":"bytes","invalid":true,"description":"About f."}]}
]}
"##
    );
}

#[test]
fn colours_are_for_terminals() {
    let files = [
        r##"{"process": "P", "path": "t/a", "kind": 2, "units": 0, "amount": 5, "description": "About t/a."},
        {"process": "P", "path": "t/b", "kind": 2, "units": 0, "amount": -6, "description": "About t/b."}"##,
    ];
    let text = show(&files, &["--color=always"]);
    assert_eq!(
        text,
        "Total resident memory (approximate) -- 0.00 MB\n\
         \u{1b}[1;4mP\u{1b}[0m\n\
         Other Measurements\n\
         \n\
         \u{1b}[1;31m-0.00 MB\u{1b}[0m (100.0%) -- t \u{1b}[1;31m[?!]\u{1b}[0m\n\
         \u{1b}[2m├───\u{1b}[0m\u{1b}[1;31m0.00 MB\u{1b}[0m (-500.00%) ── a \u{1b}[1;31m[?!]\u{1b}[0m\n\
         \u{1b}[2m└──\u{1b}[0m\u{1b}[1;31m-0.00 MB\u{1b}[0m (600.00%) ── b \u{1b}[1;31m[?!]\u{1b}[0m\n\
         \n\
         End of P\n"
    );
}

#[test]
fn differences_have_marks() {
    let files = [
        r##"{"process": "P", "path": "t/a", "kind": 2, "units": 0, "amount": 5242880, "description": "About t/a."},
        {"process": "P", "path": "t/b/c", "kind": 2, "units": 0, "amount": 6291456, "description": "About t/b/c."},
        {"process": "P", "path": "same", "kind": 2, "units": 0, "amount": 1, "description": "About same."}"##,
        r##"{"process": "P", "path": "t/a", "kind": 2, "units": 0, "amount": 9437184, "description": "About t/a."},
        {"process": "P", "path": "t/d/e", "kind": 2, "units": 0, "amount": 7340032, "description": "About t/d/e."},
        {"process": "P", "path": "f", "kind": 2, "units": 0, "amount": 1, "description": "About f."},
        {"process": "P", "path": "same", "kind": 2, "units": 0, "amount": 1, "description": "About same."}"##,
    ];
    let text = show(&files, &[]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0.00 MB
P
Other Measurements

5.00 MB (100.0%) -- t
├──7.00 MB (140.00%) ── d/e
├──-6.00 MB (-120.00%) ── b/c
└──4.00 MB (80.00%) ── a

0.00 MB ── f [+]

End of P
"##
    );
}

#[test]
fn a_leaf_and_a_tree_are_made_comparable() {
    let files = [
        r##"{"process": "P", "path": "t/a/b", "kind": 2, "units": 0, "amount": 5, "description": "About t/a/b."},
        {"process": "P", "path": "t/a/c", "kind": 2, "units": 0, "amount": 6, "description": "About t/a/c."},
        {"process": "P", "path": "t/d", "kind": 2, "units": 0, "amount": 1, "description": "About t/d."}"##,
        r##"{"process": "P", "path": "t/a", "kind": 2, "units": 0, "amount": 30, "description": "About t/a."},
        {"process": "P", "path": "t/d", "kind": 2, "units": 0, "amount": 1, "description": "About t/d."}"##,
    ];
    let text = show(&files, &["-v"]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0 B
P
Other Measurements

19 B (100.0%) -- t
└──19 B (100.0%) -- a
   ├──30 B (157.89%) ── (fake child) [!]
   ├──-6 B (-31.58%) ── c [-]
   └──-5 B (-26.32%) ── b [-]

End of P
"##
    );
}

#[test]
fn large_swings_stay_in_sight() {
    let files = [
        r##"{"process": "P", "path": "t/a/b", "kind": 2, "units": 0, "amount": 500, "description": "About t/a/b."},
        {"process": "P", "path": "t/c", "kind": 2, "units": 0, "amount": 1000, "description": "About t/c."}"##,
        r##"{"process": "P", "path": "t/a/d", "kind": 2, "units": 0, "amount": 500, "description": "About t/a/d."},
        {"process": "P", "path": "t/c", "kind": 2, "units": 0, "amount": 1003, "description": "About t/c."}"##,
    ];
    let text = show(&files, &["-v"]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0 B
P
Other Measurements

3 B (100.0%) -- t
├──0 B (00.00%) -- a
│  ├──-500 B (-16,666.67%) ── b [-]
│  └──500 B (16,666.67%) ── d [+]
└──3 B (100.0%) ── c

End of P
"##
    );
}

#[test]
fn numbers_of_processes_and_threads_do_not_differ() {
    let files = [
        r##"{"process": "web (pid 3)", "path": "t/x (tid=7)", "kind": 2, "units": 0, "amount": 5, "description": "About t/x (tid=7)."},
        {"process": "web (pid 3)", "path": "t/zone(0x1f)/a", "kind": 2, "units": 0, "amount": 1, "description": "About t/zone(0x1f)/a."}"##,
        r##"{"process": "web (pid 4)", "path": "t/x (tid=8)", "kind": 2, "units": 0, "amount": 7, "description": "About t/x (tid=8)."},
        {"process": "web (pid 4)", "path": "t/zone(0x2f)/a", "kind": 2, "units": 0, "amount": 2, "description": "About t/zone(0x2f)/a."}"##,
    ];
    let text = show(&files, &["-v"]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0 B
web (pid NNN)
Other Measurements

3 B (100.0%) -- t
├──2 B (66.67%) ── x (tid=NNN)
└──1 B (33.33%) ── zone(0xNNN)/a

End of web (pid NNN)
"##
    );
}

#[test]
fn a_table_for_a_pull_request() {
    let files = [
        r##"{"process": "P", "path": "t/a", "kind": 2, "units": 0, "amount": 5242880, "description": "About t/a."},
        {"process": "P", "path": "t/b|c", "kind": 2, "units": 0, "amount": 1048576, "description": "About t/b|c."},
        {"process": "P", "path": "t/gone", "kind": 2, "units": 0, "amount": 1, "description": "About t/gone."}"##,
        r##"{"process": "P", "path": "t/a", "kind": 2, "units": 0, "amount": 6291456, "description": "About t/a."},
        {"process": "P", "path": "t/b|c", "kind": 2, "units": 0, "amount": 524288, "description": "About t/b|c."},
        {"process": "P", "path": "t/new", "kind": 2, "units": 0, "amount": 2048, "description": "About t/new."}"##,
    ];
    let text = show(&files, &["--markdown"]);
    assert_eq!(
        text,
        r##"| Path | Before | After | Change | |
|---|--:|--:|--:|--:|
| `t/a` | 5.00 MB | 6.00 MB | +1.00 MB | +20.00% |
| `t/b\|c` | 1.00 MB | 512.00 KB | -512.00 KB | -50.00% |
| `t/new` | – | 2.00 KB | +2.00 KB | new |
| `t/gone` | 1 B | – | -1 B | gone |
"##
    );
}

#[test]
fn a_table_has_the_memory_that_no_report_names() {
    let file = |allocated: u32| {
        format!(
            r#"{{"process": "", "path": "explicit/a", "kind": 1, "units": 0, "amount": 1024, "description": "."}},
            {{"process": "", "path": "heap-allocated", "kind": 2, "units": 0, "amount": {allocated}, "description": "."}}"#
        )
    };
    let text = show(&[&file(2048), &file(4096)], &["--markdown", "--process", "Main"]);
    assert_eq!(
        text,
        "| Path | Before | After | Change | |\n|---|--:|--:|--:|--:|\n\
         | `explicit/heap-unclassified` | 1.00 KB | 3.00 KB | +2.00 KB | +200.00% |\n\
         | `heap-allocated` | 2.00 KB | 4.00 KB | +2.00 KB | +100.00% |\n"
    );
}
