//! The text of records, rule by rule: what dmd.py prints for the same dump.

use super::{Filter, Grouping, SortBy, Stacks, TextOptions, clamp, diff, digest, write_text};
use crate::read::{Dump, read_slice};

mod explained;
mod grouped;
mod referrers;
mod suggested;

/// Returns a dump with frames `a` to `f`. The stacks are `A` to `F`, `AB` to `ABCDEF`, and `M` of
/// malloc and `a`.
pub(crate) fn dump(mode: &str, blocks: &str) -> Dump {
    let text = format!(
        r##"{{"version":5,"invocation":{{"dmdEnvVar":"--mode={mode}","mode":"{mode}"}},"blockList":[{blocks}],
        "traceTable":{{"A":["a"],"B":["b"],"C":["c"],"AB":["a","b"],"AC":["a","c"],"M":["m","a"],"N":["m"]}},
        "frameTable":{{"a":"#00: a (a.rs:1)","b":"#00: b (b.rs:2)","c":"#00: c (c.rs:3)","m":"#00: malloc (m.c:9)"}}}}"##
    );
    read_slice(text.as_bytes()).unwrap()
}

/// Returns the text below the heading and the invocation.
fn text_of(dump: &Dump, how: &Grouping, options: &TextOptions) -> String {
    let mut stacks = Stacks::default();
    let digest = digest(dump, how, &mut stacks);
    let mut out = Vec::new();
    write_text(&digest, &stacks, options, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.split_once("}\n\n").unwrap().1.to_owned()
}

fn text(mode: &str, blocks: &str) -> String {
    text_of(&dump(mode, blocks), &Grouping::default(), &TextOptions::default())
}

/// Returns the lines of `text` that contain `part`.
fn lines<'a>(text: &'a str, part: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.contains(part)).collect()
}

#[test]
fn a_live_dump() {
    let blocks =
        r#"{"req":100,"slop":12,"alloc":"A","num":9},{"req":8},{"req":1000,"slop":24,"alloc":"A"}"#;
    let expected = "\
#-----------------------------------------------------------------

Live {
  10 blocks in heap block record 1 of 2
  2,032 bytes (1,900 requested / 132 slop)
  Individual block sizes: 1,024; 112 x 9
  99.61% of the heap (99.61% cumulative)
  Allocated at {
    #01: a (a.rs:1)
  }
}

Live {
  1 block in heap block record 2 of 2
  8 bytes (8 requested / 0 slop)
  0.39% of the heap (100.00% cumulative)
  Allocated at {
    #01: (no stack trace recorded due to --stacks=partial)
  }
}

#-----------------------------------------------------------------

Summary {
  Total: 2,040 bytes in 11 blocks
}

";
    assert_eq!(text("live", blocks), expected);
}

#[test]
fn a_dark_matter_dump() {
    let blocks = r#"{"req":8,"alloc":"A","reps":["B","C"]},{"req":8,"alloc":"A","reps":[]},{"req":16,"alloc":"AB","reps":["C"]}"#;
    let expected = "\
#-----------------------------------------------------------------

Twice-reported {
  1 block in heap block record 1 of 2
  8 bytes (8 requested / 0 slop)
  25.00% of the heap (25.00% cumulative)
  50.00% of twice-reported (50.00% cumulative)
  Allocated at {
    #01: a (a.rs:1)
  }
  Reported at {
    #01: b (b.rs:2)
  }
  Reported again at {
    #01: c (c.rs:3)
  }
}

Twice-reported {
  1 block in heap block record 2 of 2
  8 bytes (8 requested / 0 slop)
  25.00% of the heap (50.00% cumulative)
  50.00% of twice-reported (100.00% cumulative)
  Allocated at {
    #01: a (a.rs:1)
  }
}

#-----------------------------------------------------------------

# no unreported heap blocks

#-----------------------------------------------------------------

Once-reported {
  1 block in heap block record 1 of 1
  16 bytes (16 requested / 0 slop)
  50.00% of the heap (50.00% cumulative)
  100.00% of once-reported (100.00% cumulative)
  Allocated at {
    #01: a (a.rs:1)
    #02: b (b.rs:2)
  }
  Reported at {
    #01: c (c.rs:3)
  }
}

#-----------------------------------------------------------------

Summary {
  Total:                    32 bytes (100.00%) in       3 blocks (100.00%)
  Unreported:                0 bytes (  0.00%) in       0 blocks (  0.00%)
  Once-reported:            16 bytes ( 50.00%) in       1 blocks ( 33.33%)
  Twice-reported:           16 bytes ( 50.00%) in       2 blocks ( 66.67%)
}

";
    assert_eq!(text("dark-matter", blocks), expected);
}

#[test]
fn a_scan_dump_is_shown_as_live_with_addresses() {
    let shown =
        text("scan", r#"{"req":8,"alloc":"A","addr":"b0"},{"req":8,"alloc":"A","addr":"a000"}"#);
    assert_eq!(lines(&shown, "addresses"), ["  block addresses: 0xa000, 0xb0"], "sorted as text");
    assert_eq!(lines(&shown, "{")[0], "Live {");
}

#[test]
fn frames_that_are_cut_make_stacks_equal() {
    let blocks = r#"{"req":8,"alloc":"AB"},{"req":8,"alloc":"AC"},{"req":8,"alloc":"M"},{"req":8,"alloc":"N"}"#;
    let dump = dump("live", blocks);
    let table: [(Grouping, &[&str]); 3] = [
        (Grouping::new(8, false), &["1 of 4", "2 of 4", "3 of 4", "4 of 4"]),
        (Grouping::new(1, false), &["1 of 2", "2 of 2"]),
        (Grouping::new(1, true), &["1 of 2", "2 of 2"]),
    ];
    for (how, records) in table {
        let shown = text_of(&dump, &how, &TextOptions::default());
        let found: Vec<&str> = lines(&shown, " record ")
            .iter()
            .map(|line| line.rsplit_once("record ").unwrap().1)
            .collect();
        assert_eq!(found, records, "{how:?}");
    }
    let shown = text_of(&dump, &Grouping::new(8, true), &TextOptions::default());
    assert!(shown.ends_with("  Allocated at {\n  }\n}\n\n#-----------------------------------------------------------------\n\nSummary {\n  Total: 32 bytes in 4 blocks\n}\n\n"), "a stack of allocation functions alone is empty");
}

#[test]
fn records_are_sorted_by_what_is_asked_for() {
    let blocks = r#"{"req":10,"slop":90,"alloc":"A"},{"req":60,"slop":40,"alloc":"B"},{"req":1,"alloc":"C","num":50}"#;
    let dump = dump("live", blocks);
    let table = [
        (SortBy::Usable, ["b", "a", "c"]),
        (SortBy::Req, ["b", "c", "a"]),
        (SortBy::Slop, ["a", "b", "c"]),
        (SortBy::NumBlocks, ["c", "b", "a"]),
    ];
    for (sort_by, expected) in table {
        let options = TextOptions { sort_by, ..TextOptions::default() };
        let shown = text_of(&dump, &Grouping::default(), &options);
        let order: Vec<&str> = lines(&shown, "#01: ").iter().map(|line| &line[9..10]).collect();
        assert_eq!(order, expected, "{sort_by:?}");
    }
}

#[test]
fn filters_leave_the_number_of_records_and_the_heap_as_they_are() {
    let dump = dump("live", r#"{"req":10,"alloc":"AB"},{"req":30,"alloc":"C"}"#);
    let table: [(&[&str], &[&str], &str); 4] = [
        (&["b.rs"], &["of 2"], "10 bytes in 1 block"),
        (&["!b.rs"], &["of 2"], "30 bytes in 1 block"),
        (&["a", "!b.rs"], &[], "0 bytes in 0 blocks"),
        (&["\\!b.rs"], &[], "0 bytes in 0 blocks"),
    ];
    for (filters, records, total) in table {
        let filters = filters.iter().map(|filter| Filter::new(filter)).collect();
        let options = TextOptions { filters, ..TextOptions::default() };
        let shown = text_of(&dump, &Grouping::default(), &options);
        let found: Vec<&str> =
            lines(&shown, " record ").iter().map(|line| &line[line.len() - 4..]).collect();
        assert_eq!(
            (found.as_slice(), lines(&shown, "Total")),
            (records, vec![&*format!("  Total: {total}")])
        );
    }
}

#[test]
fn a_section_stops_at_its_thousandth_record() {
    let traces: Vec<String> = (0..1_500).map(|at| format!(r#""t{at}":["f{at}"]"#)).collect();
    let frames: Vec<String> = (0..1_500).map(|at| format!(r##""f{at}":"#00: f{at}""##)).collect();
    let blocks: Vec<String> =
        (0..1_500).map(|at| format!(r#"{{"req":{},"alloc":"t{at}"}}"#, 10_000 - at)).collect();
    let text = format!(
        r#"{{"version":5,"invocation":{{"dmdEnvVar":null,"mode":"live"}},"blockList":[{}],"traceTable":{{{}}},"frameTable":{{{}}}}}"#,
        blocks.join(","),
        traces.join(","),
        frames.join(",")
    );
    let shown = text_of(
        &read_slice(text.as_bytes()).unwrap(),
        &Grouping::default(),
        &TextOptions::default(),
    );
    assert_eq!(
        lines(&shown, " record ").last(),
        Some(&"  1 block in heap block record 999 of 1,500")
    );
    assert_eq!(lines(&shown, "# Live"), ["# Live: stopping after 1,000 heap block records"]);
    assert_eq!(lines(&shown, "Total"), ["  Total: 13,875,750 bytes in 1,500 blocks"]);
}

fn diff_text(mode: &str, old: &str, new: &str) -> String {
    let mut stacks = Stacks::default();
    let old = digest(&dump(mode, old), &Grouping::default(), &mut stacks);
    let new = digest(&dump(mode, new), &Grouping::default(), &mut stacks);
    let mut out = Vec::new();
    write_text(&diff(old, new).unwrap(), &stacks, &TextOptions::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_difference_keeps_what_changed() {
    let old = r#"{"req":8,"alloc":"A","num":3},{"req":16,"alloc":"B"},{"req":5,"alloc":"AB"},{"req":7,"alloc":"AC"},{"req":9,"alloc":"AC"}"#;
    let new = r#"{"req":8,"alloc":"A"},{"req":5,"alloc":"AB"},{"req":4,"alloc":"C"},{"req":8,"alloc":"AC","num":2}"#;
    let shown = diff_text("live", old, new);
    assert!(shown.contains("Invocation 1 {\n  $DMD = '--mode=live'\n"), "{shown}");
    assert!(shown.contains("Invocation 2 {\n"), "{shown}");
    let kept: Vec<&str> = shown
        .lines()
        .filter(|line| {
            line.contains("record")
                || line.contains("bytes (")
                || line.contains("sizes")
                || line.contains('%')
        })
        .collect();
    assert_eq!(
        kept,
        [
            "  -2 blocks in heap block record 1 of 4",
            "  -16 bytes (-16 requested / 0 slop)",
            "  Individual block sizes: -8 x 2",
            "  57.14% of the heap (57.14% cumulative)",
            "  -1 blocks in heap block record 2 of 4",
            "  -16 bytes (-16 requested / 0 slop)",
            "  57.14% of the heap (114.29% cumulative)",
            "  1 block in heap block record 3 of 4",
            "  4 bytes (4 requested / 0 slop)",
            "  -14.29% of the heap (100.00% cumulative)",
            "  0 blocks in heap block record 4 of 4",
            "  0 bytes (0 requested / 0 slop)",
            "  Individual block sizes: -9; 8 x 2; -7",
            "  -0.00% of the heap (100.00% cumulative)",
        ]
    );
}

#[test]
fn dumps_of_different_modes_are_not_compared() {
    let mut stacks = Stacks::default();
    let live = digest(&dump("live", ""), &Grouping::default(), &mut stacks);
    let cumulative = digest(&dump("cumulative", ""), &Grouping::default(), &mut stacks);
    let error = diff(live, cumulative).unwrap_err();
    assert_eq!(
        error.to_string(),
        "dumps of different modes cannot be compared: take both with the same --mode in $DMD"
    );
}

#[test]
fn words_are_clamped_to_the_blocks_they_point_into() {
    let blocks = r#"{"req":16,"addr":"100","contents":["100","10f"]},{"req":32,"addr":"200","contents":["0","110","1ff","220"]}"#;
    let mut dump = dump("scan", blocks);
    let stats = clamp(&mut dump).unwrap();
    assert_eq!((stats.to_start, stats.into_block, stats.to_nothing, stats.null), (1, 1, 3, 1));
    let words = |contents| dump.words(&contents, &mut Vec::new()).to_vec();
    let words: Vec<Vec<u64>> = dump.contents().map(words).collect();
    assert_eq!(words, [&[0x100, 0x100][..], &[]], "words of 0 at the end go away");

    let error = |blocks| clamp(&mut self::dump("scan", blocks)).unwrap_err().to_string();
    assert_eq!(
        error(r#"{"req":16,"addr":"100"},{"req":1,"addr":"10f"}"#),
        "the block at 0x10f lies in another: the dump is damaged"
    );
    assert_eq!(error(r#"{"req":16}"#), "block 0 of blockList has no `addr`: the dump is damaged");
    let live = clamp(&mut self::dump("live", "")).unwrap_err().to_string();
    assert_eq!(live, "contents are only in scan dumps: take one with DMD=--mode=scan");
}
