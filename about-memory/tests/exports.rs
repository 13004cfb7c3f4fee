//! Dumps in other viewers' files and in details, from the command line.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use memreport_analysis::export::Format;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

const DUMP: &str = r##"{"version":5,"invocation":{"dmdEnvVar":"1","mode":"dark-matter"},
"blockList":[{"req":4000,"slop":96,"alloc":"L"},{"req":500,"num":10,"alloc":"M","reps":["R"]}],
"traceTable":{"L":["l","m"],"M":["m"],"R":["r"]},
"frameTable":{"l":"#00: shop::load (src/main.rs:12)","m":"#00: shop::main (src/main.rs:40)","r":"#00: explicit/shop"}}"##;

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir()
            .join(format!("about-memory-exports-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("dark.json"), DUMP).unwrap();
        fs::write(path.join("live.json"), DUMP.replace("dark-matter", "live")).unwrap();
        Directory(path)
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_about-memory"));
        command.current_dir(&self.0).args(args).output().unwrap()
    }

    fn text(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_format_is_written_to_a_file_or_to_standard_output() {
    let directory = Directory::new("written");
    for format in Format::ALL {
        let format = format.name();
        let output = directory.run(&["export", "dark.json", "--to", format]);
        assert_eq!(output.status.code(), Some(0), "{format}");
        assert!(!output.stdout.is_empty(), "{format}");
        directory.text(&["export", "dark.json", "--to", format, "-o", "out"]);
        assert_eq!(fs::read(directory.0.join("out")).unwrap(), output.stdout, "{format}");
    }
    let dark = directory.text(&["export", "dark.json", "--to", "folded", "--only", "unreported"]);
    assert_eq!(dark, "shop::main;shop::load 4096\n");
}

#[test]
fn what_a_format_or_a_dump_cannot_do_is_refused_with_the_remedy() {
    let directory = Directory::new("refused");
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
        let output = directory.run(args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.starts_with(expected), "{said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn several_dumps_are_one_trace() {
    let directory = Directory::new("several");
    let text = directory.text(&["export", "dark.json", "live.json", "--to", "memory-infra"]);
    let trace: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    assert_eq!(events.iter().filter(|event| event["ph"] == "v").count(), 2);
}

#[test]
fn details_are_a_tree_and_growth_is_a_list() {
    let directory = Directory::new("details");
    let expected = "\
(unknown program): 9,096 live bytes in 11 blocks, 100.00% of the heap
            9,000  asked for by the program
+              96  that the allocator rounds up
=           9,096  in these blocks

          bytes    share      blocks
          9,096  100.00%          11  ƒ shop::main
          5,000   54.97%          10    <self>
          5,000   54.97%          10      Ⓣ [unknown]
          4,096   45.03%           1    ƒ shop::load
          4,096   45.03%           1      Ⓣ [unknown]
";
    assert_eq!(directory.text(&["heap", "dark.json"]), expected);
    let json = directory.text(&["heap", "dark.json", "--by", "type", "--json"]);
    let tree: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&tree["bytes"], &tree["kids"][0]["by"]), (&9_096.into(), &"type".into()));
    fs::write(directory.0.join("after.json"), DUMP.replace("\"num\":10", "\"num\":13")).unwrap();
    let expected = "\
+1,500 bytes in +3 blocks: from 9,096 in 11 to 10,596 in 14

+1,500 bytes in +3 blocks (from 5,000 to 6,500): [unknown]
    shop::main (src/main.rs:40)
";
    assert_eq!(directory.text(&["heap-diff", "dark.json", "after.json"]), expected);
    let json = directory.text(&["heap-diff", "dark.json", "after.json", "--json"]);
    let growth: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(growth["places"][0]["bytes"], 1_500);
}
