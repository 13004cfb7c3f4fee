//! Censuses from the command line: what is printed, in each form, and what is refused.

use memreport_analysis::census::{Breakdown, FileOptions, of_dump};
use memreport_analysis::read::read_slice;

use super::folder::Folder;

const DUMP: &str = r##"{"version":5,"invocation":{"dmdEnvVar":"1","mode":"dark-matter"},
"blockList":[{"req":4000,"slop":96,"alloc":"L","thread":1},{"req":500,"slop":4,"num":10,"alloc":"M","thread":2,"reps":["R"]},
  {"req":60000,"alloc":"D","thread":1,"reps":["R","S"]},{"req":16,"thread":1}],
"memreport":{"version":1,"needs":[],"mode":"dark-matter","program":"/usr/bin/shop","pid":42,
  "threads":[{"id":1,"tid":42,"name":"main"},{"id":2,"tid":43,"name":"a, \"b\""}],
  "reports":{"R":{"path":"explicit/cache/pages","type":"shop::Cache","field":"pages"},"S":{"path":"explicit/pool"}}},
"traceTable":{"L":["l","m"],"M":["m"],"D":["d","l","m","m","m","m","m","m","m","m"],"R":["r"],"S":["s"]},
"frameTable":{"l":"#00: shop::load (src/main.rs:12)","m":"#00: shop::main (src/main.rs:40)",
  "d":"#00: shop::page::decode (src/page.rs:7)","r":"#00: explicit/cache/pages","s":"#00: explicit/pool"}}"##;

fn folder() -> Folder {
    let grown = DUMP
        .replace(r#""num":10"#, r#""num":12"#)
        .replace(r#"{"req":60000"#, r#"{"req":8000"#)
        .replace(r#"{"req":16,"thread":1}"#, r#"{"req":90000,"thread":3}"#);
    let sampled = DUMP
        .replace(r#""needs":[],"#, r#""needs":[],"sampled":{"sampleBytes":4096},"#)
        .replace(r#""num":10"#, r#""num":10,"weight":8.5"#);
    Folder::new()
        .with("a.json", DUMP)
        .with("b.json", grown)
        .with("live.json", DUMP.replace("dark-matter", "live"))
        .with("sampled.json", sampled)
}

/// Runs a census. Returns what it prints.
#[track_caller]
fn census(folder: &Folder, args: &[&str]) -> String {
    let text = folder.text(&[&["census"], args].concat());
    assert!(!text.contains('\x1b'), "no colour in a pipe");
    text
}

/// Fails with both texts, as they are.
#[track_caller]
fn assert_text(found: &str, expected: &str) {
    assert!(found == expected, "found:\n{found}\nexpected:\n{expected}");
}

#[test]
fn a_tree_has_what_is_within_what() {
    let folder = folder();
    let expected = "\
shop (pid 42): 69,152 bytes in 13 blocks

 bytes    share blocks
 4,112    5.95%      2  unreported
 4,112    5.95%      2  └─ other
 5,040    7.29%     10  once
 5,040    7.29%     10  └─ explicit/cache/pages
60,000   86.77%      1  twice
60,000   86.77%      1  └─ explicit/cache/pages and explicit/pool
";
    assert_text(&census(&folder, &["a.json"]), expected);
    let expected = "\
shop (pid 42): 69,152 bytes in 13 blocks

 bytes    share blocks
64,112   92.71%      3  main (1)
60,000   86.77%      1  ├─ shop::page::decode (src/page.rs:7)
                        │     shop::load (src/main.rs:12)
                        │     shop::main (src/main.rs:40)
                        │     shop::main (src/main.rs:40)
                        │     shop::main (src/main.rs:40)
                        │     shop::main (src/main.rs:40)
                        │     shop::main (src/main.rs:40)
                        │     shop::main (src/main.rs:40)
                        │     … 2 more frames
 4,096    5.92%      1  ├─ … 1 more
    16    0.02%      1  └─ noStack
 5,040    7.29%     10  … 1 more
";
    assert_text(&census(&folder, &["a.json", "--by", "thread,stack", "--top", "1"]), expected);
    let expected = "\
shop (pid 42): 69,152 bytes in 13 blocks

 bytes    share blocks
69,152  100.00%     13  [by sizeClass]
60,000   86.77%      1  ├─ 32769-65536
 5,040    7.29%     10  ├─ 257-512
 4,096    5.92%      1  ├─ 2049-4096
    16    0.02%      1  └─ 9-16
69,152  100.00%     13  [by bucket]
60,000   86.77%      1  ├─ 60000 bytes each
 9,152   13.23%     12  └─ (left out)
";
    let breakdown = r#"[{"by":"sizeClass"},{"by":"bucket","limit":1}]"#;
    assert_text(&census(&folder, &["a.json", "--breakdown", breakdown]), expected);
    let about = census(&folder, &["sampled.json", "--by", "crate"]);
    assert!(about.starts_with("shop (pid 42): about 106,952 bytes in 88 blocks\n"), "{about}");
}

#[test]
fn a_table_has_a_row_for_each_way_down() {
    let folder = folder();
    let expected = "\
shop (pid 42): 69,152 bytes in 13 blocks

  bytes |  share | blocks | reporter                         | allocationStack
--------+--------+--------+----------------------------------+------------------------------------
 60,000 | 86.77% |      1 | explicit/cache and explicit/pool | shop::page::decode (src/page.rs:7)
        |        |        |                                  | shop::load (src/main.rs:12)
        |        |        |                                  | shop::main (src/main.rs:40)
        |        |        |                                  | … 7 more
  5,040 |  7.29% |     10 | explicit/cache                   | shop::main (src/main.rs:40)
  4,112 |  5.95% |      2 | … 2 more                         |
";
    let words = ["a.json", "--by", "reporter:2,stack", "--format", "table", "--top", "2"];
    assert_text(&census(&folder, &words), expected);
}

#[test]
fn csv_is_for_programs() {
    let folder = folder();
    let expected = "\
thread,type,bytes,count,slop
main (1),owned by shop::Cache,60000,1,0
\"a, \"\"b\"\" (2)\",owned by shop::Cache,5040,10,40
main (1),other,4112,2,96
";
    assert_text(&census(&folder, &["a.json", "--by", "thread,type", "--csv"]), expected);
    let expected = "\
reporter,bytes,count,slop,sampledBytes,sampledCount
explicit/cache/pages and explicit/pool,60000,1,0,60000,1
(2 more),46952,87,436,9152,12
";
    assert_text(
        &census(&folder, &["sampled.json", "--by", "reporter", "--csv", "--top", "1"]),
        expected,
    );
    assert_text(
        &census(&folder, &["a.json", "--breakdown", r#"{"by":"count"}"#, "--csv"]),
        "bytes,count,slop\n69152,13,136\n",
    );
}

#[test]
fn json_is_what_spidermonkey_would_answer() {
    let folder = folder();
    folder.write("breakdown.json", r#"{"by":"coarseType","once":{"by":"filename"}}"#);
    let expected = concat!(
        r#"{"unreported":{"count":2,"bytes":4112},"once":{"src/main.rs":{"count":10,"bytes":5040},"#,
        r#""noFilename":{"count":0,"bytes":0}},"twice":{"count":1,"bytes":60000},"other":{"count":0,"bytes":0}}"#,
        "\n"
    );
    assert_text(
        &census(&folder, &["a.json", "--breakdown", "@breakdown.json", "--json"]),
        expected,
    );
}

#[test]
fn of_two_it_is_what_grew() {
    let folder = folder();
    let expected = "\
shop (pid 42): +38,992 bytes in +2 blocks since the first

  bytes blocks
+90,000     +1  thread 3
+90,000     +1  └─ noReporter
 +1,008     +2  a, \"b\" (2)
 +1,008     +2  └─ explicit/cache
-52,016     -1  main (1)
-52,000      0  ├─ explicit/cache and explicit/pool
    -16     -1  └─ noReporter
";
    let text = census(&folder, &["a.json", "b.json", "--by", "thread,reporter:2"]);
    assert_text(&text, expected);
    let nothing = census(&folder, &["a.json", "a.json", "--by", "thread,reporter:2"]);
    assert_text(&nothing, "shop (pid 42): 0 bytes in 0 blocks since the first\n\nbytes blocks\n");
}

/// The numbers of lines that have one in this column of a separator's.
fn column(text: &str, separator: char, column: usize) -> i64 {
    let cell =
        |line: &str| line.split(separator).nth(column).map(|cell| cell.trim().replace(',', ""));
    text.lines().filter_map(cell).filter_map(|cell| cell.parse::<i64>().ok()).sum()
}

#[test]
fn every_form_adds_up_to_the_dump() {
    const ALL: i64 = 69_152;
    let folder = folder();
    for words in
        ["state", "reporter:1,type,stack:3", "size,thread", "crate,file,field", "age,scope,stack:1"]
    {
        for top in ["1", "2", "1000"] {
            let tree = census(&folder, &["a.json", "--by", words, "--top", top]);
            let is_top = |line: &&str| !line.contains(['├', '└', '│']);
            let firsts = tree.lines().skip(3).filter(is_top);
            let firsts = firsts.filter_map(|line| {
                line.split_whitespace().next()?.replace(',', "").parse::<i64>().ok()
            });
            assert_eq!(firsts.sum::<i64>(), ALL, "{tree}");
            let table =
                census(&folder, &["a.json", "--by", words, "--top", top, "--format", "table"]);
            assert_eq!(column(&table, '|', 0), ALL, "{table}");
            let columns = words.split(',').count();
            let csv = census(&folder, &["a.json", "--by", words, "--top", top, "--csv"]);
            let csv = csv.replace("a, \"\"b\"\"", "a");
            assert_eq!(column(&csv, ',', columns), ALL, "{csv}");
        }
        let dump = read_slice(DUMP.as_bytes()).unwrap();
        let census = of_dump(&dump, &Breakdown::of_words(words).unwrap(), &FileOptions::default());
        assert_eq!(census.root().amount.bytes, ALL);
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_the_remedy() {
    let folder = folder();
    let table: [(&[&str], &str); 8] = [
        (&["nothing.json"], "about-memory: nothing.json: "),
        (&["a.json", "live.json"], "about-memory: dumps of different modes cannot be compared"),
        (
            &["a.json", "--by", "kind"],
            "about-memory: --by: cannot group by `kind`; known are reporter, type, stack",
        ),
        (
            &["a.json", "--breakdown", r#"{"by":"type","then":{"by":"kind"}}"#],
            "about-memory: --breakdown: `then`: cannot group by `kind`; known are count, bucket",
        ),
        (&["a.json", "--breakdown", "{"], "about-memory: --breakdown: the breakdown is not JSON: "),
        (&["a.json", "--breakdown", "@no.json"], "about-memory: no.json: "),
        (
            &["a.json", "--by", "type", "--breakdown", "{}"],
            "error: the argument '--by <AXIS,…>' cannot be used with",
        ),
        (&["4194305"], NO_PROCESS),
    ];
    for (args, expected) in table {
        let output = folder.run(&[&["census"], args].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.starts_with(expected), "{said}");
        assert!(output.stdout.is_empty());
    }
}

/// The message about a process that is not there.
const NO_PROCESS: &str = if cfg!(unix) {
    "about-memory: there is no process 4194305"
} else {
    "about-memory: memreport has no sockets on this system"
};

/// A static holds a list of two blocks, a reporter counts a third, which holds a fourth. One block
/// holds itself, and nothing holds another one.
const SCAN: &str = r##"{"version":5,"invocation":{"dmdEnvVar":"--mode=scan","mode":"scan"},"blockList":[
  {"req":16,"addr":"1000","contents":["2008"]},{"req":100,"slop":12,"addr":"2000"},
  {"req":1000,"addr":"3000","reportedBy":["R"],"contents":["4000"]},{"req":500,"addr":"4000","contents":["7"]},
  {"req":64,"addr":"5000","contents":["5000"]},{"req":24,"addr":"6000","contents":["5000","1000"]}],
"memreport":{"version":1,"reports":{"R":{"path":"explicit/cache"}},
  "statics":[{"module":"/usr/bin/shop","offset":"10","name":"shop::STOCK","to":"1000"}]},
"traceTable":{"R":["r"]},"frameTable":{"r":"#00: explicit/cache"}}"##;

#[test]
fn a_census_of_a_scan_is_limited_to_what_is_reachable() {
    let folder = Folder::new().with("scan.json", SCAN).with("a.json", DUMP);
    let json = |args: &[&str]| {
        let by = ["scan.json", "--json", "--breakdown", r#"{"by":"reporter"}"#];
        census(&folder, &[&by, args].concat())
    };
    assert_eq!(
        json(&[]).trim(),
        r#"{"explicit/cache":{"count":1,"bytes":1000},"noReporter":{"count":5,"bytes":716}}"#
    );
    assert_eq!(
        json(&["--reachable"]).trim(),
        r#"{"explicit/cache":{"count":1,"bytes":1000},"noReporter":{"count":3,"bytes":628}}"#
    );
    let output = folder.run(&["census", "scan.json", "--reachable"]);
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "note: scan.json: left out are 88 bytes in 2 blocks that only stacks or libraries hold, or nothing\n"
    );
    let refused = folder.run(&["census", "a.json", "--reachable"]);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(refused.stderr).unwrap(),
        "about-memory: a.json: contents are only in scan dumps: take one with DMD=--mode=scan\n"
    );
}

#[test]
fn each_state_has_a_line_also_without_blocks() {
    const ONCE: &str = r##"{"version":5,"invocation":{"dmdEnvVar":"1","mode":"dark-matter"},
"blockList":[{"req":500,"reps":["R"]}],
"memreport":{"version":1,"needs":[],"mode":"dark-matter","program":"/usr/bin/shop","reports":{"R":{"path":"explicit/cache"}}},
"traceTable":{"R":["r"]},"frameTable":{"r":"#00: explicit/cache"}}"##;
    let text = census(&Folder::new().with("once.json", ONCE), &["once.json", "--by", "state"]);
    for state in ["unreported", "once", "twice"] {
        assert!(text.lines().any(|line| line.ends_with(&format!("  {state}"))), "{text}");
    }
}
