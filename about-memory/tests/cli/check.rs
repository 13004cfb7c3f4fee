//! `about-memory check`, as a program: what it prints, how it exits, what it writes.

use std::fs;
use std::process::Output;

use super::folder::Folder;

const REPORT: &str = r#"{"version": 1, "hasMozMallocUsableSize": true, "reports": [
    {"process": "server", "path": "explicit/index/words", "kind": 1, "units": 0, "amount": 3145728, "description": "."},
    {"process": "server", "path": "explicit/index/pages", "kind": 1, "units": 0, "amount": 1048576, "description": "."},
    {"process": "server", "path": "explicit/cache", "kind": 1, "units": 0, "amount": 1048576, "description": "."},
    {"process": "server", "path": "heap-allocated", "kind": 2, "units": 0, "amount": 6291456, "description": "."},
    {"process": "server", "path": "page-faults-hard", "kind": 2, "units": 2, "amount": 7, "description": "."}]}"#;

fn folder() -> Folder {
    Folder::new().with("report.json", REPORT)
}

fn check(folder: &Folder, budget: &str, more: &[&str]) -> Output {
    folder.write("budget.toml", budget);
    folder.run(&[&["check", "report.json", "--budget", "budget.toml"], more].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec())
        .unwrap()
        .lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

#[test]
fn what_is_within_budget_is_one_line() {
    let output =
        check(&folder(), "[ceilings]\n'explicit/index' = '4MB'\n'explicit/index/*' = '3MB'", &[]);
    assert_eq!(text(&output.stdout), "within budget: 3 paths compared\n");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn what_is_over_is_a_table_and_exit_status_1() {
    let budget = "heap-unclassified = '10%'\n[ceilings]\n'explicit/*/words' = '2MB'\n'page-faults-hard' = 6\nnowhere = 1";
    let output = check(&folder(), budget, &[]);
    insta::assert_snapshot!(text(&output.stdout), @r"
     Process | Path                       |  Amount |   Ceiling |   Over by |
    ---------+----------------------------+---------+-----------+-----------+--------
     server  | explicit/index/words       | 3.00 MB |   2.00 MB |   1.00 MB | +50.0%
     server  | explicit/heap-unclassified | 1.00 MB | 614.40 KB | 409.60 KB | +66.7%
     server  | page-faults-hard           |       7 |         6 |         1 | +16.7%

    over budget: 3 of 3 paths
    ");
    assert_eq!(text(&output.stderr), "note: no path matches the ceiling `nowhere`\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_tolerance_is_on_top_of_each_ceiling() {
    let folder = folder();
    for (tolerance, code) in [("'49%'", 1), ("'50%'", 0), ("'1MB'", 0), ("1048575", 1)] {
        let output = check(
            &folder,
            &format!("tolerance = {tolerance}\n[ceilings]\n'explicit/*/words' = '2MB'"),
            &[],
        );
        assert_eq!(output.status.code(), Some(code), "{tolerance}");
    }
}

#[test]
fn blessing_keeps_everything_but_the_ceilings() {
    let folder = folder();
    let budget = "# Ours.\nheap-unclassified = \"1%\" # low\n\n[ceilings]\n\"explicit/index/*\" = \"64 MB\"  # each\nnowhere = 5\n\
                  \"page-faults-hard\" = 2\n";
    let output = check(&folder, budget, &["--bless"]);
    assert_eq!(text(&output.stdout), "budget.toml: 3 of 4 ceilings set to what this report has\n");
    let blessed = fs::read_to_string(folder.path("budget.toml")).unwrap();
    insta::assert_snapshot!(blessed, @r##"
    # Ours.
    heap-unclassified = "16.67%" # low

    [ceilings]
    "explicit/index/*" = "3.00 MB"  # each
    nowhere = 5
    "page-faults-hard" = 7
    "##);
    assert_eq!(check(&folder, &blessed, &[]).status.code(), Some(0));
}

#[test]
fn what_cannot_be_checked_is_exit_status_2() {
    let folder = folder();
    for (budget, words) in [
        ("[ceilings", "budget.toml: not TOML"),
        ("", "budget.toml: no ceilings"),
        ("[ceilings]\na = '5 apples'", "budget.toml: `a`: unknown unit `apples`"),
    ] {
        let output = check(&folder, budget, &[]);
        assert_eq!(output.status.code(), Some(2), "{budget}");
        assert!(
            text(&output.stderr).starts_with(&format!("about-memory: {words}")),
            "{}",
            text(&output.stderr)
        );
    }
}
