//! Blocks by one question, and answers as JSON.

use super::explained::{DUMP, options};
use crate::analysis::{explain, group_by, write_explained_json, write_groups, write_groups_json};
use crate::axis::Axis;
use crate::read::{Dump, read_slice};

fn dump() -> Dump {
    read_slice(DUMP.as_bytes()).unwrap()
}

/// Asserts each group: name, all bytes, unreported bytes.
fn assert_groups(by: &Axis, expected: &[(&str, i128, i128)]) {
    let groups = group_by(&dump(), by, &options());
    let found: Vec<(&str, i128, i128)> = groups
        .iter()
        .map(|group| (&*group.name, group.all.usable(), group.unreported.usable()))
        .collect();
    assert_eq!(found, expected, "{by:?}");
}

#[test]
fn blocks_are_grouped_by_what_asked_for_them() {
    assert_groups(
        &Axis::stack(),
        &[
            (
                "subject::Lexicon::intern (src/lexicon.rs:41) < subject::main (src/main.rs:3)",
                2_048,
                2_048,
            ),
            ("subject::main (src/main.rs:3)", 940, 0),
            (
                "serde_json::parse (serde_json-1.0.1/src/de.rs:5) < subject::Lexicon::intern (src/lexicon.rs:41)",
                8,
                8,
            ),
            ("(no stack was recorded)", 1, 1),
        ],
    );
    assert_groups(
        &Axis::Type,
        &[
            ("type unknown, allocated in subject::Lexicon::intern", 2_048, 2_048),
            ("type unknown, allocated in subject::main", 940, 0),
            ("type unknown, allocated in serde_json::parse", 8, 8),
            ("type unknown", 1, 1),
        ],
    );
    assert_groups(
        &Axis::Crate,
        &[("subject", 2_988, 2_048), ("serde_json", 8, 8), ("(unknown)", 1, 1)],
    );
    assert_groups(
        &Axis::Size,
        &[
            ("1,024 bytes", 2_048, 2_048),
            ("900 bytes", 900, 0),
            ("40 bytes", 40, 0),
            ("8 bytes", 8, 8),
            ("1 bytes", 1, 1),
        ],
    );
}

#[test]
fn blocks_are_grouped_by_who_reported_them() {
    assert_groups(
        &Axis::reporter(),
        &[
            ("(not reported)", 2_057, 2_057),
            ("explicit/index", 900, 0),
            ("explicit/index and explicit/store", 40, 0),
        ],
    );
    assert_groups(
        &Axis::Field,
        &[
            ("(not reported)", 2_057, 2_057),
            ("subject::Index.words", 900, 0),
            ("subject::Index.words and explicit/store", 40, 0),
        ],
    );
}

#[test]
fn threads_are_named_where_they_have_names() {
    let text = DUMP
        .replacen(r#""needs":[]"#, r#""threads":[{"id":0,"tid":9,"name":"main"}]"#, 1)
        .replacen(r#""alloc":"A","num":2"#, r#""alloc":"A","num":2,"thread":0"#, 1)
        .replacen(r#"{"req":8,"alloc":"L"}"#, r#"{"req":8,"alloc":"L","thread":3}"#, 1);
    let groups = group_by(&read_slice(text.as_bytes()).unwrap(), &Axis::Thread, &options());
    let found: Vec<(&str, i128)> =
        groups.iter().map(|group| (&*group.name, group.all.usable())).collect();
    assert_eq!(found, [("main (0)", 2_048), ("(unknown)", 941), ("thread 3", 8)]);
}

#[test]
fn groups_are_a_table_for_people_and_a_list_for_programs() {
    let groups = group_by(&dump(), &Axis::reporter(), &options());
    let mut out = Vec::new();
    write_groups(&groups, 2, &mut out).unwrap();
    let expected = "          bytes    share      blocks      unreported           twice  of
          2,057   68.64%           4           2,057               0  (not reported)
            900   30.03%           1               0               0  explicit/index
                … and 1 more
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);

    let mut out = Vec::new();
    write_groups_json(&groups, 1, &mut out).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let totals = serde_json::json!({"bytes": 2057, "blocks": 4, "requested": 2009, "slop": 48});
    let none = serde_json::json!({"bytes": 0, "blocks": 0, "requested": 0, "slop": 0});
    let expected = serde_json::json!([{"name": "(not reported)", "all": totals, "unreported": totals, "twice": none}]);
    assert_eq!(value, expected);
}

#[test]
fn an_explained_dump_is_an_object_for_programs() {
    let mut out = Vec::new();
    write_explained_json(&explain(&dump(), &options()), &options(), &mut out).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(value["heapUnclassified"], 2_057 - 40 - 48 + (112 - 64));
    let classes = value["classes"].as_array().unwrap();
    let unreported = classes.iter().find(|class| class["class"] == "unreported").unwrap();
    assert_eq!(unreported["all"]["bytes"], 2_057);
    let first = serde_json::json!({
        "bytes": 2048, "blocks": 2, "requested": 2000, "slop": 48, "type": null, "crate": "subject",
        "own": "subject::Lexicon::intern (src/lexicon.rs:41)", "reporters": [], "remedy": null,
        "frames": ["subject::Lexicon::intern (src/lexicon.rs:41)", "subject::main (src/main.rs:3)"]
    });
    assert_eq!(unreported["places"][0], first);
    assert_eq!(value["wrong"][1]["is"], "partial");
    assert_eq!(value["wrong"][1]["crate"], "subject");
}

#[test]
fn blocks_are_grouped_by_their_age_where_it_is_known() {
    let text = DUMP
        .replacen(r#""alloc":"A","num":2"#, r#""alloc":"A","num":2,"ageMs":61000"#, 1)
        .replacen(r#"{"req":8,"alloc":"L"}"#, r#"{"req":8,"alloc":"L","ageMs":999}"#, 1);
    let groups = group_by(&read_slice(text.as_bytes()).unwrap(), &Axis::age(), &options());
    let found: Vec<(&str, i128)> =
        groups.iter().map(|group| (&*group.name, group.all.usable())).collect();
    assert_eq!(found, [("1 min to 1 h", 2_048), ("(unknown)", 941), ("under 1 s", 8)]);
}

#[test]
fn coverage_adds_up_the_bytes_of_wrong_reports() {
    let found = crate::analysis::coverage(&dump(), &options()).unwrap();
    let bytes_of = |text: &str| -> Vec<i128> {
        let those = found.suggestions.iter().filter(|one| one.text.contains(text));
        those.map(|one| one.bytes).collect()
    };
    // Two reports of 24 bytes, and one of 64 for 112.
    assert_eq!(bytes_of("takes bytes that are in no heap block for one"), [48]);
    assert_eq!(bytes_of("claims 64 bytes of a block made with 100"), [112 - 64]);
    let all: Vec<i128> = found.suggestions.iter().map(|one| one.bytes).collect();
    assert_eq!(all, [2_048, 48, 48, 40, 8, 1]);
}
