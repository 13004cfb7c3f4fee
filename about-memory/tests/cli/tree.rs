//! Tests `about-memory tree`: text, filters and JSON.

use super::folder::Folder;

const SCAN: &str = r#"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "scan"},
    "blockList": [{"req": 700, "addr": "1000", "contents": ["3000"]},
      {"req": 200, "addr": "3000", "contents": []}, {"req": 100, "addr": "4000"}],
    "memreport": {"version": 1, "statics": [{"module": "/p", "offset": "8", "name": "shop::CARTS", "to": "1000"}]},
    "traceTable": {}, "frameTable": {}}"#;

fn out(words: &[&str]) -> String {
    let output = Folder::new().with("scan.json", SCAN).run(words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints text")
}

#[test]
fn rows_have_bytes_shares_and_blocks() {
    let expected = "\
1,000 bytes in 3 blocks
90.0 % are below a named root, 0.0 % through typed fields all the way; 0.0 % have a type; several roots hold 0.0 %
the program's file has no types: build it with debug = true in its profile to see fields

bytes    share blocks
  900   90.00%        static shop::CARTS
  900   90.00%      2 └─ ? type unknown  (mean 450)
  100   10.00%        (1 smaller)
";
    assert_eq!(out(&["tree", "scan.json", "--min", "20"]), expected);
}

#[test]
fn a_filter_leaves_the_rows_above_and_below_a_name() {
    let text = out(&["tree", "scan.json", "--filter", "CARTS", "--depth", "0"]);
    let lines: Vec<&str> = text.lines().skip(5).collect();
    assert_eq!(lines, ["  900   90.00%        static shop::CARTS"]);
}

#[test]
fn json_has_all_rows_and_adds_up() {
    let text = out(&["tree", "scan.json", "--json", "--min", "99"]);
    let value: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let rows = value["rows"].as_array().expect("a list");
    let sum: u64 = rows.iter().filter_map(|row| row["bytes"].as_u64()).sum();
    assert_eq!((rows.len(), sum, value["bytes"].as_u64()), (2, 1000, Some(1000)));
    assert_eq!(rows[0]["is"], "static");
    assert_eq!(rows[0]["children"][0]["uncertain"], true);
}

#[test]
fn two_scans_are_compared_row_by_row() {
    let later = SCAN.replace("700", "1500");
    let folder = || Folder::new().with("a.json", SCAN).with("b.json", &later);
    let out = |words: &[&str]| {
        let output = folder().run(words);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("it prints text")
    };
    let expected = "\
+800 bytes in 0 blocks: 1,000 bytes, now 1,800

bytes    now    blocks
 +800  1,700           static shop::CARTS
 +800  1,700           └─ ? type unknown
    0    100           (1 with smaller changes)
";
    assert_eq!(out(&["tree", "a.json", "b.json"]), expected);
    let text = out(&["tree", "b.json", "a.json", "--json", "--filter", "CARTS"]);
    let value: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let rows = value["rows"].as_array().expect("a list");
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0]["bytesBefore"], &rows[0]["bytesAfter"]), (&1700.into(), &900.into()));
    let output = folder().run(&["tree", "a.json", "missing.json"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("missing.json"));
}
