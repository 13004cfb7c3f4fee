//! The offline page: what it holds is what the command line shows, and nothing in it leads out.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::read::GzDecoder;
use std::fs;
use std::io::Read;

use super::folder::Folder;

const ONE: &str = r##"{"version": 1, "hasMozMallocUsableSize": true, "reports": [
    {"process": "P (pid 1)", "path": "explicit/a/<\/script><script>alert(1)<\/script>", "kind": 1, "units": 0, "amount": 5000000, "description": "About \"a\"."},
    {"process": "P (pid 1)", "path": "explicit/b/http:\\\\x", "kind": 0, "units": 0, "amount": 3000000, "description": "é"},
    {"process": "P (pid 1)", "path": "explicit/b/c", "kind": 1, "units": 0, "amount": -2, "description": ""},
    {"process": "P (pid 1)", "path": "explicit/b/c", "kind": 1, "units": 0, "amount": 1.5, "description": ""},
    {"process": "P (pid 1)", "path": "odd/x", "kind": 2, "units": 1, "amount": "17", "description": null},
    {"process": "P (pid 1)", "path": "odd/y", "kind": 2, "units": 1, "amount": [1, 2], "description": 5},
    {"process": "P (pid 1)", "path": "odd/z", "kind": 2, "units": 1},
    {"process": "P (pid 1)", "path": "odd/huge", "kind": 2, "units": 1, "amount": 1e400},
    {"process": "P (pid 1)", "path": "segments", "segments": ["meant", "a\\b/c"], "kind": 2, "units": 1, "amount": 1},
    {"process": "P (pid 1)", "path": "heap-allocated", "kind": 2, "units": 0, "amount": 9000000, "description": "All."}
]}"##;
const TWO: &str = r##"{"version": 1, "hasMozMallocUsableSize": true, "reports": [
    {"process": "P (pid 2)", "path": "explicit/a", "kind": 1, "units": 0, "amount": 4, "description": "About a."},
    {"process": "P (pid 2)", "path": "explicit/b/c", "kind": 1, "units": 0, "amount": 7000000, "description": ""}
]}"##;

/// Returns the data that a page contains under a name.
fn embedded(page: &str, name: &str) -> String {
    let start = format!("<script type=\"application/gzip\" data-name=\"{name}\">");
    let (_, rest) = page.split_once(&start).unwrap_or_else(|| panic!("no {name} in the page"));
    let (text, _) = rest.split_once("</script>").unwrap();
    let zipped = BASE64_STANDARD.decode(text).unwrap();
    let mut json = String::new();
    GzDecoder::new(&zipped[..]).read_to_string(&mut json).unwrap();
    json
}

fn folder() -> Folder {
    Folder::new().with("one.json", ONE).with("two.json", TWO)
}

/// Returns the page of both files.
fn page(folder: &Folder) -> String {
    folder.text(&["html", "one.json", "two.json", "-o", "page.html"]);
    fs::read_to_string(folder.path("page.html")).unwrap()
}

#[test]
fn the_page_holds_what_the_command_line_shows() {
    let folder = folder();
    let page = page(&folder);
    for (name, file) in [("moments/0/reports", "one.json"), ("moments/1/reports", "two.json")] {
        folder.write("held.json", embedded(&page, name));
        for verbose in [&[][..], &["--verbose"]] {
            let show = |file| folder.text(&[&[file], verbose].concat());
            assert_eq!(show("held.json"), show(file), "{name}");
        }
        let described = |file| folder.text(&["--descriptions", file]);
        assert_eq!(described("held.json"), described(file), "{name}");
    }
}

#[test]
fn the_page_holds_what_differs() {
    let folder = folder();
    // A report that lacks a field cannot be compared.
    let is_whole = |line: &&str| !line.contains("path") || line.contains("description");
    let comparable: Vec<&str> = ONE.lines().filter(is_whole).collect();
    folder.write("one.json", comparable.join("\n"));
    let difference = embedded(&page(&folder), "differences/0/1");
    let value: serde_json::Value = serde_json::from_str(&difference).unwrap();
    let amounts: Vec<String> = value["reports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|report| format!("{} {} {}", report["path"], report["amount"], report["_presence"]))
        .collect();
    assert!(amounts.contains(&"\"explicit/b/c\" 7000000.5 null".to_owned()), "{amounts:#?}");
    assert!(amounts.contains(&"\"explicit/a\" 4 2".to_owned()), "{amounts:#?}");
    assert!(amounts.contains(&"\"heap-allocated\" -9000000 1".to_owned()), "{amounts:#?}");
}

#[test]
fn nothing_in_the_page_leads_out_or_runs_but_its_own_program() {
    let folder = folder();
    let page = page(&folder);
    assert!(page.contains("content=\"default-src 'none'; script-src 'sha256-"));
    assert!(!page.contains("unsafe-inline") && !page.contains("alert(1)"));
    for way in ["src=", "@import", "url(", "<iframe", "<form action"] {
        assert!(!page.contains(way), "{way}");
    }
    let addresses = page.matches("http://").count() + page.matches("https://").count();
    // The name of SVG's elements is one, and nothing is fetched from it.
    assert_eq!(addresses, page.matches("\"http://www.w3.org/2000/svg\"").count());
    assert_eq!(page.matches("<script>").count(), 1);
}

#[test]
fn what_cannot_be_shown_is_refused_as_elsewhere() {
    let folder = folder();
    for (args, words) in [
        (["html", "none.json", "-o", "page.html"], "about-memory: none.json: no such file\n"),
        (
            ["html", "one.json", "-o", "no/such/page.html"],
            "about-memory: no/such/page.html: cannot be written: ",
        ),
    ] {
        let output = folder.run(&args);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(error.starts_with(words), "{error}");
    }
    assert!(!folder.path("page.html").exists());
}

/// A report of a process that began at a time, with so much in its cache.
fn report(began: u64, minute: u64, cache: u64) -> String {
    let report = |path: &str, kind: u8, amount: u64| {
        format!(
            r#"{{"process":"server (pid 7)","path":"{path}","kind":{kind},"units":0,"amount":{amount},"description":""}}"#
        )
    };
    let reports = [
        report("resident", 2, cache + 3_000_000),
        report("rss/anonymous/unnamed", 2, cache + 2_000_000),
        report("heap-committed/allocated", 2, cache + 1_000_000),
        report("heap-allocated", 2, cache + 1_000_000),
        report("explicit/<script>alert(1)", 1, cache),
    ];
    format!(
        r#"{{"version":1,"hasMozMallocUsableSize":true,"memreport":{{"version":1,"allocator":"glibc","timeMs":{},
           "process":{{"name":"server","pid":7,"startMs":{began}}}}},"reports":[{}]}}"#,
        1_000_000 + minute * 60_000,
        reports.join(",")
    )
}

#[test]
fn resident_memory_is_explained_by_the_earlier_moments_of_the_process() {
    let folder = folder();
    for (name, text) in [
        ("now.json", report(1000, 12, 90_000_000)),
        ("before.json", report(1000, 2, 20_000_000)),
        ("restarted.json", report(900_000, 1, 5_000_000)),
    ] {
        folder.write(name, text);
    }
    let names = ["now.json", "before.json", "restarted.json", "two.json"];
    folder.text(&[&["html"], &names[..], &["-o", "page.html"]].concat());
    let page = fs::read_to_string(folder.path("page.html")).unwrap();
    let on_page = |moment: usize| {
        let found = embedded(&page, &format!("moments/{moment}/findings"));
        let found: serde_json::Value = serde_json::from_str(&found).unwrap();
        found["resident"].as_str().unwrap().to_owned()
    };
    let printed = |files: &[&str]| folder.text(&[&["resident", "--html"], files].concat());
    assert_eq!(on_page(0), printed(&["before.json", "now.json"]));
    assert_eq!(on_page(1), printed(&["before.json"]));
    assert_eq!(on_page(2), printed(&["restarted.json"]));
    assert!(on_page(0).contains("2 snapshots over 10 min"));
    assert!(on_page(0).contains("<p class=\"verdict reported\">"));
    assert!(on_page(0).contains("explicit/&lt;script&gt;alert(1)"));
    assert!(page.contains(r#""sheets":["resident"]"#));
    assert!(!page.contains("data-name=\"moments/3/findings\""), "it does not say what is resident");
}

/// A dump of one block, as DMD writes it.
const DUMP: &str = r##"{"version": 5, "invocation": {"dmdEnvVar": "1", "mode": "live"},
    "memreport": {"version": 1, "program": "/bin/shop", "pid": 7},
    "blockList": [{"req": 1000, "slop": 24, "alloc": "A"}], "traceTable": {"A": ["B"]},
    "frameTable": {"B": "#01: shop::load_catalogue (src/main.rs:3)"}}"##;

/// Returns the page's list of what is in it.
fn manifest(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("id=\"manifest\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn a_dump_alone_opens_on_its_flame_graph() {
    let folder = Folder::new().with("before", DUMP);
    assert_eq!(folder.text(&["page", "before"]), "before.html\n");
    let page = fs::read_to_string(folder.path("before.html")).unwrap();
    let manifest = manifest(&page);
    assert_eq!(manifest["first"], serde_json::json!({ "view": "heap", "as": "flame" }));
    assert_eq!(manifest["moments"][0]["hasReports"], false);
    assert!(embedded(&page, "moments/0/heap").contains("shop::load_catalogue"));
    // A page that this program has written is written anew.
    assert_eq!(folder.text(&["page", "open", "before"]), "before.html\n");
}

#[test]
fn a_dump_brings_the_report_that_it_lies_beside() {
    let folder = Folder::new().with("heap.json", ONE).with("heap.dmd.json", DUMP);
    assert_eq!(folder.text(&["page", "heap.dmd.json"]), "heap.html\n");
    let page = fs::read_to_string(folder.path("heap.html")).unwrap();
    assert_eq!(manifest(&page)["moments"][0]["hasReports"], true);
    assert!(embedded(&page, "moments/0/reports").contains("explicit/b/c"));
}

#[test]
fn a_page_replaces_no_other_file() {
    let folder = Folder::new().with("heap.json", ONE).with("heap.html", "<html>mine</html>");
    let output = folder.run(&["page", "heap.json"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("heap.html: this is no page of about-memory"), "{message}");
    assert_eq!(fs::read_to_string(folder.path("heap.html")).unwrap(), "<html>mine</html>");
    assert_eq!(folder.text(&["page", "heap.json", "-o", "other.html"]), "other.html\n");
}

#[test]
fn two_dumps_without_reports_are_compared_by_their_heaps_alone() {
    let folder = Folder::new().with("before", DUMP).with("after", DUMP);
    folder.text(&["page", "before", "after", "-o", "page.html"]);
    let page = fs::read_to_string(folder.path("page.html")).unwrap();
    assert!(!page.contains("data-name=\"differences/0/1\""));
    assert_eq!(embedded(&page, "moments/0/heap"), embedded(&page, "moments/1/heap"));
}
