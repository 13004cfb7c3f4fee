//! Tests by SpiderMonkey's documented examples, with blocks of the heap in place of its objects.

use serde_json::{Value, json};

use crate::census::{Breakdown, Census, FileOptions, of_dump};
use crate::heap::Frames;
use crate::heap::tests::HEAP;
use crate::read::read_slice;

pub(super) fn census_of(heap: &str, breakdown: &Breakdown) -> Census {
    let dump = read_slice(heap.as_bytes()).unwrap();
    of_dump(&dump, breakdown, &FileOptions { frames: Frames::Own, root: None })
}

pub(super) fn json_of(census: &Census) -> Value {
    let mut out = Vec::new();
    census.write_json(&mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn take(breakdown: &str) -> Value {
    json_of(&census_of(HEAP, &breakdown.parse().unwrap()))
}

fn count(count: u64, bytes: u64) -> Value {
    json!({ "count": count, "bytes": bytes })
}

#[test]
fn a_count_has_the_figures_that_are_set() {
    assert_eq!(take(r#"{"by":"count"}"#), count(28, 4_314_936));
    assert_eq!(take(r#"{"by":"count","bytes":false}"#), json!({ "count": 28 }));
    assert_eq!(
        take(r#"{"by":"count","count":false,"slop":true,"label":"everything"}"#),
        json!({ "bytes": 4_314_936, "slop": 96 + 20 * 536 + 8 + 2, "label": "everything" })
    );
}

#[test]
fn coarse_types_are_always_there() {
    let expected = json!({
        "unreported": { "[u8]": count(1, 4_096), "other": count(2, 40) },
        "once": count(22, 1_310_800),
        "twice": count(3, 3_000_000),
        "other": { "other": count(0, 0) },
    });
    let breakdown =
        r#"{"by":"coarseType","unreported":{"by":"objectClass"},"other":{"by":"objectClass"}}"#;
    assert_eq!(take(breakdown), expected);
    let live = HEAP.replace(r#""mode":"dark-matter"},"#, r#""mode":"live"},"#);
    let of_live = census_of(&live, &r#"{"by":"coarseType"}"#.parse().unwrap());
    assert_eq!(json_of(&of_live)["other"], count(28, 4_314_936));
}

#[test]
fn stacks_are_keys_of_a_map_and_blocks_without_one_stand_apart() {
    let breakdown =
        r#"{"by":"allocationStack","then":{"by":"objectClass"},"noStack":{"by":"count"}}"#;
    let expected = json!([
        [
            ["shop::Buffer::grow#1 (src/buffer.rs:10)", "shop::work (src/main.rs:60)"],
            { "owned by shop::Cache": count(3, 3_000_000), "other": count(0, 0) }
        ],
        [
            ["shop::Cache::insert (src/cache.rs:33)", "shop::main (src/main.rs:40)"],
            { "owned by shop::Cache": count(20, 1_310_720), "other": count(0, 0) }
        ],
        [
            ["shop::load (src/main.rs:12)", "shop::main (src/main.rs:40)"],
            { "[u8]": count(1, 4_096), "other": count(0, 0) }
        ],
        [
            ["<[u8; 4] as shop::\"Key\">::store (src/key.rs:7)", "shop::main (src/main.rs:40)"],
            { "owned by shop::Cache": count(1, 48), "other": count(0, 0) }
        ],
        [
            ["<[u8; 4] as shop::\"Key\">::store (src/key.rs:8)", "shop::main (src/main.rs:40)"],
            { "owned by shop::Cache": count(1, 32), "other": count(0, 0) }
        ],
        [
            ["???[/usr/lib/gone.so +0x1234]", "shop::main (src/main.rs:40)"],
            { "other": count(1, 24) }
        ],
        ["noStack", count(1, 16)],
    ]);
    assert_eq!(take(breakdown), expected);
    // Like in SpiderMonkey, there is no entry where there are no such blocks.
    let none = census_of(&HEAP.replace(",\n  {\"req\":16}]", "]"), &breakdown.parse().unwrap());
    assert!(!json_of(&none).to_string().contains("noStack"));
}

#[test]
fn stacks_can_be_cut_and_read_from_outside() {
    let expected = json!([
        [["shop::work (src/main.rs:60)"], count(3, 3_000_000)],
        [["shop::main (src/main.rs:40)"], count(24, 1_314_920)],
        ["noStack", count(1, 16)],
    ]);
    assert_eq!(take(r#"{"by":"allocationStack","depth":1,"invert":true}"#), expected);
}

#[test]
fn files_are_those_of_the_program() {
    let expected = json!({
        "src/buffer.rs": count(3, 3_000_000),
        "src/cache.rs": count(20, 1_310_720),
        // The frame of an unknown library is skipped.
        "src/main.rs": count(2, 4_120),
        "src/key.rs": count(2, 80),
        "noFilename": count(1, 16),
    });
    assert_eq!(take(r#"{"by":"filename"}"#), expected);
}

#[test]
fn reporters_are_cut_at_a_depth() {
    let expected = json!({
        "explicit/cache and explicit/pool": count(3, 3_000_000),
        "explicit/cache": count(22, 1_310_800),
        "noReporter": count(3, 4_136),
    });
    assert_eq!(take(r#"{"by":"reporter"}"#), expected);
    let expected = json!({ "explicit": count(25, 4_310_800), "noReporter": count(3, 4_136) });
    assert_eq!(take(r#"{"by":"reporter","depth":1}"#), expected);
    let expected = json!({
        "shop::Cache.entries and explicit/pool": count(3, 3_000_000),
        "shop::Cache.entries": count(22, 1_310_800),
        "noField": count(3, 4_136),
    });
    assert_eq!(take(r#"{"by":"field"}"#), expected);
}

#[test]
fn most_bytes_come_first_and_then_names_are_in_order() {
    let equal = HEAP
        .replace(r#""thread":3"#, r#""thread":4"#)
        .replace(r#"{"req":16}"#, r#"{"req":24,"thread":3}"#);
    let mut out = Vec::new();
    census_of(&equal, &r#"{"by":"thread"}"#.parse().unwrap()).write_json(&mut out).unwrap();
    let expected = "{\"worker (2)\":{\"count\":3,\"bytes\":3000000},\"main (1)\":{\"count\":23,\"bytes\":1314896},\
        \"thread 3\":{\"count\":1,\"bytes\":24},\"thread 4\":{\"count\":1,\"bytes\":24},\
        \"unknown\":{\"count\":0,\"bytes\":0}}\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn threads_scopes_crates_sizes_and_ages() {
    let expected = json!([
        { "worker (2)": count(3, 3_000_000), "main (1)": count(23, 1_314_896), "thread 3": count(1, 24), "unknown": count(1, 16) },
        { "noScope": count(28, 4_314_936) },
        { "shop": count(24, 4_314_816), "unknown": count(4, 120) },
        { "524289-1048576": count(3, 3_000_000), "32769-65536": count(20, 1_310_720), "2049-4096": count(1, 4_096),
          "33-64": count(1, 48), "17-32": count(2, 56), "9-16": count(1, 16) },
        { "unknown": count(28, 4_314_936) },
    ]);
    let breakdown =
        r#"[{"by":"thread"},{"by":"scope"},{"by":"crate"},{"by":"sizeClass"},{"by":"age"}]"#;
    assert_eq!(take(breakdown), expected);
    let scoped = HEAP
        .replace(r#"{"req":16}"#, r#"{"req":16,"scope":2}"#)
        .replace(r#""needs":[],"#, r#""needs":[],"scopes":[[0,"request"],[1,"search"]],"#);
    let scopes = census_of(&scoped, &r#"{"by":"scope"}"#.parse().unwrap());
    assert_eq!(json_of(&scopes)["request > search"], count(1, 16));
}

#[test]
fn ages_are_those_of_the_dump() {
    let aged = HEAP
        .replace(r#""thread":3"#, r#""thread":3,"ageMs":999"#)
        .replace(r#""num":3"#, r#""num":3,"ageMs":60000"#);
    let census = census_of(&aged, &Breakdown::of_words("age").unwrap());
    let expected = json!({
        "1 min to 1 h": count(3, 3_000_000),
        "under 1 s": count(1, 24),
        "unknown": count(24, 1_314_912),
    });
    assert_eq!(json_of(&census), expected);
}

#[test]
fn a_bucket_adds_up_the_blocks_that_it_leaves_out() {
    let expected = json!({
        "blocks": [
            { "count": 3, "bytes": 3_000_000, "size": 1_000_000, "slop": 0 },
            { "count": 20, "bytes": 1_310_720, "size": 65_536, "slop": 536 },
        ],
        "leftOut": { "count": 5, "bytes": 4_216 },
    });
    assert_eq!(take(r#"{"by":"bucket","limit":2}"#), expected);
    let scan = r##"{"version":5,"invocation":{"dmdEnvVar":"--mode=scan","mode":"scan"},
        "blockList":[{"req":8,"addr":"7f10","contents":["0"]},{"req":24,"slop":8,"addr":"7f40"}],
        "traceTable":{},"frameTable":{}}"##;
    let listed = json_of(&census_of(scan, &r#"{"by":"bucket"}"#.parse().unwrap()));
    let expected = json!([
        { "count": 1, "bytes": 32, "size": 32, "slop": 8, "address": "7f40" },
        { "count": 1, "bytes": 8, "size": 8, "slop": 0, "address": "7f10" },
    ]);
    assert_eq!((&listed["blocks"], &listed["leftOut"]), (&expected, &count(0, 0)));
}

#[test]
fn a_sample_is_beside_its_estimate() {
    let sampled = HEAP
        .replace(r#""needs":[],"#, r#""needs":[],"sampled":{"sampleBytes":4096},"#)
        .replace(r#""req":1000000,"num":3"#, r#""req":1000000,"num":3,"weight":2.5"#);
    let census = census_of(&sampled, &Breakdown::default());
    let expected = json!({
        "count": 33, "bytes": 8_814_936, "sampledCount": 28, "sampledBytes": 4_314_936
    });
    assert_eq!(json_of(&census), expected);
}

#[test]
fn a_group_that_is_called_as_no_group_stands_beside_it() {
    let named = HEAP
        .replace("explicit/pool", "noReporter")
        .replace(r#""reps":["R","S"]"#, r#""reps":["S"]"#);
    let census = json_of(&census_of(&named, &r#"{"by":"reporter"}"#.parse().unwrap()));
    assert_eq!(census["\"noReporter\""], count(3, 3_000_000));
    assert_eq!(census["noReporter"], count(3, 4_136));
}

#[test]
fn growth_is_first_and_equal_groups_are_left_out() {
    let grown = HEAP
        .replace(r#""req":1000000,"num":3"#, r#""req":1000000,"num":5"#)
        .replace(r#""req":65000,"slop":536,"num":20"#, r#""req":65000,"slop":536,"num":19"#)
        .replace(r#"{"req":16}"#, r#"{"req":16},{"req":8,"thread":9}"#);
    let breakdown: Breakdown = r#"[{"by":"thread"},{"by":"bucket","limit":1}]"#.parse().unwrap();
    let (before, after) = (census_of(HEAP, &breakdown), census_of(&grown, &breakdown));
    let growth = after.since(&before).unwrap();
    assert!(growth.is_difference());
    let signed = |count: i64, bytes: i64| json!({ "count": count, "bytes": bytes });
    let groups = json!({
        "worker (2)": signed(2, 2_000_000), "thread 9": signed(1, 8), "main (1)": signed(-1, -65_536), "unknown": signed(0, 0)
    });
    let lines = json!([
        { "count": 5, "bytes": 5_000_000, "size": 1_000_000, "slop": 0 },
        { "count": -3, "bytes": -3_000_000, "size": 1_000_000, "slop": 0 },
    ]);
    let found = json_of(&growth);
    assert_eq!((&found[0], &found[1]["blocks"]), (&groups, &lines));
    assert_eq!(found[1]["leftOut"], signed(0, -65_528));
    let nothing = json_of(&before.since(&before).unwrap());
    assert_eq!(nothing[0], json!({ "unknown": signed(0, 0) }));
    let other = census_of(HEAP, &Breakdown::default());
    assert!(other.since(&before).is_err());
}

#[test]
fn each_group_is_written_by_its_own_breakdown() {
    let expected = json!({
        "unreported": {
            "main (1)": { "count": 1, "bytes": 4_096, "slop": 96 },
            "thread 3": { "count": 1, "bytes": 24, "slop": 0 },
            "unknown": { "count": 1 },
        },
        "once": [
            [["shop::Cache::insert (src/cache.rs:33)"], { "count": 20, "label": "cached" }],
            [["<[u8; 4] as shop::\"Key\">::store (src/key.rs:7)"], { "count": 1, "label": "cached" }],
            [["<[u8; 4] as shop::\"Key\">::store (src/key.rs:8)"], { "count": 1, "label": "cached" }],
        ],
        "twice": [{ "bytes": 3_000_000 }, { "count": 3 }],
        "other": { "count": 0, "bytes": 0, "label": "rest" },
    });
    let breakdown = r#"{"by":"coarseType",
        "unreported":{"by":"thread","then":{"by":"count","slop":true},"unknown":{"by":"count","bytes":false}},
        "once":{"by":"allocationStack","depth":1,"then":{"by":"count","bytes":false,"label":"cached"}},
        "twice":[{"by":"count","count":false},{"by":"count","bytes":false}],
        "other":{"by":"count","label":"rest"}}"#;
    assert_eq!(take(breakdown), expected);
}

#[test]
fn censuses_by_different_breakdowns_are_not_compared() {
    let by = |breakdown: &str| census_of(HEAP, &breakdown.parse().unwrap());
    let error = by(r#"{"by":"type"}"#).since(&by(r#"{"by":"thread"}"#)).unwrap_err();
    let expected = "censuses by different breakdowns cannot be compared: take both by the same";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_key_spelt_like_the_one_of_untracked_blocks_is_quoted() {
    let heap = r#"{"version":5,"invocation":{"dmdEnvVar":null,"mode":"live"},
        "memreport":{"version":1,"untracked":{"blocks":2,"bytes":50},"scopes":[[0,"untracked"]]},
        "blockList":[{"req":8,"scope":1}],"traceTable":{},"frameTable":{}}"#;
    let census = json_of(&census_of(heap, &r#"{"by":"scope"}"#.parse().unwrap()));
    assert_eq!((&census["\"untracked\""], &census["untracked"]), (&count(1, 8), &count(2, 50)));
}
