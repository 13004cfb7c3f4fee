//! Dumps in other viewers' files and in details, from the command line.

use memreport_analysis::export::Format;
use std::fs;

use super::folder::Folder;

const DUMP: &str = r##"{"version":5,"invocation":{"dmdEnvVar":"1","mode":"dark-matter"},
"blockList":[{"req":4000,"slop":96,"alloc":"L"},{"req":500,"num":10,"alloc":"M","reps":["R"]}],
"traceTable":{"L":["l","m"],"M":["m"],"R":["r"]},
"frameTable":{"l":"#00: shop::load (src/main.rs:12)","m":"#00: shop::main (src/main.rs:40)","r":"#00: explicit/shop"}}"##;

fn folder() -> Folder {
    Folder::new().with("dark.json", DUMP).with("live.json", DUMP.replace("dark-matter", "live"))
}

#[test]
fn every_format_is_written_to_a_file_or_to_standard_output() {
    let folder = folder();
    for format in Format::ALL {
        let format = format.name();
        let output = folder.run(&["export", "dark.json", "--to", format]);
        assert_eq!(output.status.code(), Some(0), "{format}");
        assert!(!output.stdout.is_empty(), "{format}");
        folder.text(&["export", "dark.json", "--to", format, "-o", "out"]);
        assert_eq!(fs::read(folder.path("out")).unwrap(), output.stdout, "{format}");
    }
    let dark = folder.text(&["export", "dark.json", "--to", "folded", "--only", "unreported"]);
    assert_eq!(dark, "shop::main;shop::load 4096\n");
}

#[test]
fn what_a_format_or_a_dump_cannot_do_is_refused_with_the_remedy() {
    let folder = folder();
    let table: [(&[&str], &str); 4] = [
        (
            &["export", "dark.json", "live.json", "--to", "dhat"],
            "about-memory: this format has room for one heap: export them one by one, or --to memory-infra or massif",
        ),
        (
            &["export", "live.json", "--to", "dhat", "--only", "once"],
            "about-memory: live.json: a dump of this mode does not say who reports what: take one with DMD=1",
        ),
        (
            &["heap-diff", "dark.json", "live.json"],
            "about-memory: dumps of different modes cannot be compared: take both with the same --mode in $DMD",
        ),
        (
            &["heap", "dark.json", "--min", "200%"],
            "error: invalid value '200%' for '--min <PERCENT>': write it as `0.5%`",
        ),
    ];
    for (args, expected) in table {
        let output = folder.run(args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.starts_with(expected), "{said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn several_dumps_are_one_trace() {
    let folder = folder();
    let text = folder.text(&["export", "dark.json", "live.json", "--to", "memory-infra"]);
    let trace: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    assert_eq!(events.iter().filter(|event| event["ph"] == "v").count(), 2);
}

#[test]
fn details_are_a_tree_and_growth_is_a_list() {
    let folder = folder();
    let expected = "\
(unknown program): 9,096 live bytes in 11 blocks, 100.00% of the heap
            9,000  requested by the program
+              96  of slop, added by the allocator
=           9,096  in these blocks

          bytes    share      blocks
          9,096  100.00%          11  ƒ shop::main
          5,000   54.97%          10    <self>
          5,000   54.97%          10      Ⓣ [unknown]
          4,096   45.03%           1    ƒ shop::load
          4,096   45.03%           1      Ⓣ [unknown]
";
    assert_eq!(folder.text(&["heap", "dark.json"]), expected);
    let json = folder.text(&["heap", "dark.json", "--by", "type", "--json"]);
    let tree: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&tree["bytes"], &tree["kids"][0]["by"]), (&9_096.into(), &"type".into()));
    folder.write("after.json", DUMP.replace("\"num\":10", "\"num\":13"));
    let expected = "\
+1,500 bytes in +3 blocks: from 9,096 in 11 to 10,596 in 14

+1,500 bytes in +3 blocks (from 5,000 to 6,500): [unknown]
    shop::main (src/main.rs:40)
";
    assert_eq!(folder.text(&["heap-diff", "dark.json", "after.json"]), expected);
    let json = folder.text(&["heap-diff", "dark.json", "after.json", "--json"]);
    let growth: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(growth["places"][0]["bytes"], 1_500);
}

#[test]
fn amounts_beyond_64_bits_are_the_nearest_number() {
    let folder = folder();
    let most = u64::MAX;
    let huge = DUMP.replace(r#""req":500,"num":10"#, &format!(r#""req":{most},"num":2"#));
    folder.write("huge.json", huge);
    assert_eq!(folder.json(&["heap", "tree", "huge.json", "--json"])["bytes"], i64::MAX);
    let growth = folder.json(&["heap", "diff", "dark.json", "huge.json", "--json"]);
    assert_eq!(growth["after"]["bytes"], i64::MAX);
    for format in Format::ALL {
        let output = folder.run(&["export", "huge.json", "--to", format.name()]);
        assert_eq!(output.status.code(), Some(0), "{format:?}");
    }
    folder.text(&["page", "build", "huge.json", "-o", "page.html"]);
}

#[test]
fn dumps_of_any_time_are_one_trace() {
    let own = format!(r#""memreport":{{"version":1,"uptimeMs":{}}},"blockList""#, u64::MAX);
    let folder = Folder::new().with("late.json", DUMP.replace(r#""blockList""#, &own));
    folder.text(&["export", "late.json", "late.json", "--to", "memory-infra"]);
}

#[test]
fn an_output_never_replaces_an_input() {
    let recording = "{\"recording\":1,\"pid\":7,\"startedMs\":0}\n";
    let folder = folder().with("shop.rec", recording);
    let table: [&[&str]; 5] = [
        &["recording", "shop.rec", "--dump", "./shop.rec"],
        &["export", "live.json", "dark.json", "--to", "massif", "-o", "./dark.json"],
        &["heap", "records", "live.json", "dark.json", "-o", "./dark.json"],
        &["page", "build", "live.json", "dark.json", "-o", "./dark.json"],
        &["inspect", "dark.json", "--save", "./dark.json"],
    ];
    for args in table {
        let output = folder.run(args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        let expected = "the output would replace the input ";
        assert!(said.contains(expected) && said.contains("; name another output"), "{said}");
    }
    assert_eq!(fs::read_to_string(folder.path("dark.json")).unwrap(), DUMP);
    assert_eq!(fs::read_to_string(folder.path("shop.rec")).unwrap(), recording);
    // The same dump with more names may take its place.
    assert!(folder.run(&["symbolicate", "dark.json", "-o", "dark.json"]).status.success());
    // A copy is another file.
    fs::copy(folder.path("dark.json"), folder.path("copy.json")).unwrap();
    folder.text(&["export", "dark.json", "--to", "folded", "-o", "copy.json"]);
}

#[cfg(unix)]
#[test]
fn an_output_is_an_input_under_any_name() {
    let folder = folder();
    std::os::unix::fs::symlink("dark.json", folder.path("link.json")).unwrap();
    fs::hard_link(folder.path("dark.json"), folder.path("hard.json")).unwrap();
    for name in ["link.json", "hard.json"] {
        let output = folder.run(&["export", "dark.json", "--to", "folded", "-o", name]);
        let said = String::from_utf8(output.stderr).unwrap();
        let expected =
            format!("about-memory: {name}: the output would replace the input dark.json;");
        assert!(said.starts_with(&expected), "{said}");
    }
}
