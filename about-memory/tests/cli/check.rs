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
fn an_incomplete_report_sets_no_ceilings() {
    let folder = folder();
    let own = r#""memreport": {"version": 1, "missed": [{"reporter": "explicit/cache", "reason": "locked"}]}, "reports": ["#;
    folder.write("report.json", REPORT.replace("\"reports\": [", own));
    let budget = "[ceilings]\n'explicit/index' = '64MB'\n";
    let output = check(&folder, budget, &["--bless"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let note = "note: budget.toml stays unchanged: memory is missing from this report";
    assert!(text(&output.stderr).contains(note), "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(folder.path("budget.toml")).unwrap(), budget);
}

#[cfg(unix)]
#[test]
fn blessing_keeps_the_permissions_of_the_budget_and_a_link_to_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    folder.write("real.toml", "[ceilings]\n'explicit/index' = '64MB'\n");
    let real = folder.path("real.toml");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, folder.path("budget.toml")).unwrap();
    let output = folder.run(&["check", "report.json", "--budget", "budget.toml", "--bless"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(fs::symlink_metadata(folder.path("budget.toml")).unwrap().is_symlink());
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(fs::read_to_string(&real).unwrap().contains("4.00MB"));
}

#[test]
fn a_report_with_too_deep_a_path_is_refused_at_once() {
    let folder = folder();
    let deep = format!("explicit/index/{}", "a/".repeat(1 << 20));
    folder.write("report.json", REPORT.replace("explicit/index/", &deep));
    let output = check(&folder, "[ceilings]\n'**/b' = '1MB'", &[]);
    assert_eq!(output.status.code(), Some(2));
    let expected = "about-memory: report.json: the path that begins with `explicit/index/a/a/a/a` \
                    has more than 500 segments";
    assert!(text(&output.stderr).starts_with(expected), "{}", text(&output.stderr));
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
