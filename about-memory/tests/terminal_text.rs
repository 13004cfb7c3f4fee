//! Names of strangers in reports, dumps, recordings and programs reach no terminal as they are.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A window title, "clear the screen", the same by C1, and characters that reorder the line.
const HOSTILE: &str = "\x1b]0;t\x07\x1b[2J\u{9b}2J\u{7f}\r\u{202e}\u{2066}\u{200f}\u{61c}";

fn json() -> String {
    HOSTILE.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect()
}

fn report() -> String {
    let name = json();
    let one = |path: &str, amount: i64| {
        format!(
            r#"{{"process":"P{name}","path":"{path}","kind":1,"units":0,"amount":{amount},"description":"D{name}."}}"#
        )
    };
    format!(
        r#"{{"version":1,"hasMozMallocUsableSize":true,"reports":[{},{},{}]}}"#,
        one(&format!("explicit/a{name}/b{name}"), 3_000_000),
        one(&format!("explicit/a{name}/c{name}"), -1),
        one(&format!("flat{name}"), 77)
    )
}

fn dump(mode: &str, blocks: &str) -> String {
    let name = json();
    format!(
        r##"{{"version":5,"invocation":{{"dmdEnvVar":"{name}","mode":"{mode}"}},"blockList":[{blocks}],
        "memreport":{{"version":1,"needs":[],"mode":"{mode}","program":"/usr/bin/p{name}","pid":42,
        "notes":["n{name}"],"threads":[{{"id":1,"tid":42,"name":"t{name}"}}],
        "reports":{{"R":{{"path":"explicit/r{name}","type":"T{name}","field":"f{name}"}}}}}},
        "traceTable":{{"L":["l","m"],"R":["r"]}},
        "frameTable":{{"l":"#00: load{name} (src/{name}.rs:12)","m":"#00: main{name} (src/main.rs:40)","r":"#00: explicit/r{name}"}}}}"##
    )
}

fn recording() -> String {
    let name = json();
    format!(
        r#"{{"recording":1,"program":"/usr/bin/{name}","pid":42,"startedMs":0,"sampleBytes":null}}
["thread",1,42,"main{name}"]
["scope",0,"load{name}"]
["site",1,1,["10"],1]
["+",500000,1,4096,1000,1008]
["=",0,1008,1,0,0,4096]
{{"end":true,"events":1,"lost":0}}
"#
    )
}

fn unsafe_character(text: &str) -> Option<char> {
    text.chars().find(|c| match c {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' => true,
        '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    })
}

fn assert_safe(output: &Output, args: &[&str]) {
    for bytes in [&output.stdout, &output.stderr] {
        let text = str::from_utf8(bytes).unwrap();
        assert_eq!(unsafe_character(text), None, "{args:?}: {text:?}");
    }
}

#[test]
fn no_command_prints_what_a_terminal_acts_on() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    let pointing = r#"{"req":4000,"slop":96,"alloc":"L","addr":"1000","contents":["2000"],"thread":1},
        {"req":40,"alloc":"L","addr":"2000","thread":1}"#;
    let reported =
        r#"{"req":4000,"slop":96,"alloc":"L","thread":1,"reps":["R"]},{"req":50,"alloc":"L"}"#;
    file("report.json", &report());
    file("more.json", &report().replace("77", "99").replace("3000000", "9000000"));
    file("dump.json", &dump("dark-matter", reported));
    file("more-dump.json", &dump("dark-matter", &reported.replace("4000", "8000")));
    file("live.json", &dump("live", r#"{"req":4000,"alloc":"L"}"#));
    file("scan.json", &dump("scan", pointing));
    file("a.rec", &recording());
    file("broken.json", &format!("{{\"version\":5,\"{}\":{{", json()));
    file("budget.toml", "[[ceiling]]\npath = \"explicit/**\"\nmax = \"1 B\"\n");
    let commands: &[&[&str]] = &[
        &["report.json"],
        &["report.json", "--verbose"],
        &["report.json", "--descriptions"],
        &["report.json", "--json"],
        &["report.json", "--notes"],
        &["diff", "report.json", "more.json"],
        &["diff", "report.json", "more.json", "--markdown"],
        &["explain-rss", "report.json"],
        &["explain-rss", "report.json", "--html"],
        &["check", "report.json", "budget.toml"],
        &["heap", "tree", "dump.json"],
        &["heap", "tree", "dump.json", "--json"],
        &["heap", "diff", "dump.json", "more-dump.json"],
        &["heap", "records", "dump.json"],
        &["heap", "records", "--explain", "dump.json"],
        &["heap", "records", "--json", "dump.json"],
        &["heap", "records", "--by", "function", "live.json"],
        &["heap", "coverage", "dump.json"],
        &["heap", "coverage", "dump.json", "--markdown"],
        &["heap", "census", "dump.json"],
        &["heap", "census", "dump.json", "--by", "thread,reporter,stack:2"],
        &["heap", "census", "dump.json", "--format", "table"],
        &["heap", "census", "dump.json", "--json"],
        &["heap", "dominators", "scan.json"],
        &["heap", "why-alive", "scan.json", "--block", "1000"],
        &["recording", "a.rec"],
        &["recording", "a.rec", "--json"],
        &["heap", "tree", "broken.json"],
        &["broken.json"],
    ];
    let printed = printed_safely(directory.path(), commands);
    // The names are shown, not dropped.
    for name in ["load␛]0;t␇␛[2J\\u{9b}2J␡␍\\u{202e}", "explicit/r␛"] {
        assert!(printed.contains(name), "{name}: {printed}");
    }
}

/// Returns what commands print, after a look at it.
fn printed_safely(directory: &Path, commands: &[&[&str]]) -> String {
    let mut printed = String::new();
    for args in commands {
        let output = Command::new(env!("CARGO_BIN_EXE_about-memory"))
            .current_dir(directory)
            .env("XDG_RUNTIME_DIR", directory)
            .args(*args)
            .output()
            .unwrap();
        assert_safe(&output, args);
        printed.push_str(str::from_utf8(&output.stdout).unwrap());
        printed.push_str(str::from_utf8(&output.stderr).unwrap());
    }
    printed
}

#[test]
fn our_own_colours_reach_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("report.json"), report().replace("\\u001b", "\\u001b[1m"))
        .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_about-memory"))
        .current_dir(&directory)
        .args(["report.json", "--color=always"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let plain = ["\x1b[2m", "\x1b[1m", "\x1b[1;31m", "\x1b[1;4m", "\x1b[0m"]
        .iter()
        .fold(text.clone(), |text, sequence| text.replace(sequence, ""));
    assert!(text.contains("\x1b[1;31m-0.00 MB\x1b[0m"), "{text:?}");
    assert!(text.contains("b␛[1m]0;t"), "{text:?}");
    assert_eq!(unsafe_character(&plain), None, "{plain:?}");
}

/// Names that Windows does not allow, devices, and the sockets of programs.
#[cfg(unix)]
mod on_unix {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;
    use std::thread;

    /// Answers every request as a program whose every word is hostile.
    fn serve(listener: UnixListener) {
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut line = String::new();
                BufReader::new(&stream).read_line(&mut line).unwrap();
                let name = json();
                let answer = if line.contains("\"status\"") {
                    format!(
                        r#"{{"protocol":1,"pid":{},"name":"s{name}","commands":[{{"name":"c{name}","description":"d{name}"}}],
                        "tracking":"t{name}","heap_allocated":1,"heap_blocks":1,"resident":1,"saved":["v{name}"]}}"#,
                        std::process::id()
                    )
                } else if line.contains("\"report\"") {
                    report()
                } else if line.contains("\"minimize\"") {
                    HOSTILE.to_owned()
                } else {
                    let _ = writeln!(stream, r#"{{"error":"e{name}"}}"#);
                    continue;
                };
                let header = format!(r#"{{"ok":[{{"name":"report","bytes":{}}}]}}"#, answer.len());
                // The client may have gone.
                let _ = write!(stream, "{header}\n{answer}");
            }
        });
    }

    #[test]
    fn no_name_of_a_file_and_no_answer_of_a_program_acts_on_a_terminal() {
        let directory = tempfile::tempdir().unwrap();
        let hostile = format!("f{HOSTILE}");
        fs::write(directory.path().join(&hostile), "{}").unwrap();
        fs::write(directory.path().join("dump.json"), dump("live", r#"{"req":40,"alloc":"L"}"#))
            .unwrap();
        let pid = std::process::id();
        let socket = directory.path().join(format!("memreport-{pid}.sock"));
        serve(UnixListener::bind(socket).unwrap());
        let (pid, folder) = (pid.to_string(), directory.path().to_str().unwrap());
        let commands: &[&[&str]] = &[
            &["heap", "records", "dump.json", "-o", "/dev/stdout"],
            &["heap", "tree", &hostile],
            &[&hostile],
            &["missing", &hostile],
            &["ps", "--folder", folder, &hostile],
            &["ps", "--folder", folder],
            &["ps", "--folder", folder, "--json"],
            &[&pid],
            &["call", &pid],
            &["call", &pid, "c"],
            &["minimize", &pid],
            &["track", &pid, &hostile],
        ];
        let printed = printed_safely(directory.path(), commands);
        // The names are shown, not dropped.
        for name in ["f␛]0;t␇␛[2J", "s␛]0;t", "explicit/a␛", "e␛]0;t"] {
            assert!(printed.contains(name), "{name}: {printed}");
        }
    }
}
