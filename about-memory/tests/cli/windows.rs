//! Tests what differs on Windows: commands that are not there, paths, dumps of other systems.

use std::path::{MAIN_SEPARATOR, Path};
use std::process::Output;

use super::folder::Folder;

const REPORT: &str = r#"{"version": 1, "hasMozMallocUsableSize": true, "reports": [
    {"process": "", "path": "explicit/a", "kind": 1, "units": 0, "amount": 5, "description": "A."}]}"#;

/// A dump of Linux, with an address in a library that is not on this machine.
const DUMP: &str = r##"{"version":5,"invocation":{"dmdEnvVar":"1","mode":"live"},
    "memreport":{"version":1,"program":"/usr/bin/shop","pid":7,"mode":"live",
      "modules":[{"path":"/usr/lib/x86_64-linux-gnu/libshop.so","buildId":"abcdef","base":"7f0000000000"}]},
    "blockList":[{"req":4000,"slop":96,"alloc":"A"}],"traceTable":{"A":["f","m"]},
    "frameTable":{"f":"#00: ???[/usr/lib/x86_64-linux-gnu/libshop.so +0x10]","m":"#01: shop::main (src/main.rs:40)"}}"##;

fn notes(output: Output) -> String {
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn commands_that_need_a_program_say_what_to_do_instead() {
    let folder = Folder::new();
    let no_sockets = "about-memory: memreport has no sockets on this system, so running programs cannot be asked; save a report \
                      in the program, by `memreport::snapshot().save(\"heap.json.gz\")`, and name that file\n";
    let no_tracker = "about-memory: DMD does not track programs on this system; measure values in the program, save a report by \
                      `memreport::snapshot().save(\"heap.json.gz\")`, and show it: about-memory heap.json.gz\n";
    let no_fleet = "about-memory: memreport-fleet does not run on this system; copy the reports to a Linux machine\n";
    let table = [
        ("ps --quick", no_sockets),
        ("top shop", no_sockets),
        ("live shop", no_sockets),
        ("snapshot shop -o heap.json.gz", no_sockets),
        ("minimize shop", no_sockets),
        ("track shop --stop", no_sockets),
        ("attach 7 -- --mode=profile", no_sockets),
        ("log shop --follow", no_sockets),
        ("call shop status", no_sockets),
        ("ask shop", no_sockets),
        ("page serve", no_sockets),
        ("run -- shop --port 80", no_tracker),
        ("run --help", no_tracker),
        ("record -o all.rec -- shop", no_tracker),
        ("preload -o shop.so", no_tracker),
        ("agent --help", no_fleet),
        ("fleet leak", no_fleet),
        (
            "inspect 7",
            "about-memory: running processes are inspected on Linux on x86-64 only; core files of one, anywhere\n",
        ),
        (
            "inspect core",
            "about-memory: no such file, and no process can be read on this system: `core` must be a file\n",
        ),
        (
            "heap dominators shop",
            "about-memory: no such file, and no process can be read on this system: `shop` must be a file\n",
        ),
        ("indexer", "about-memory: indexer: no such file\n"),
    ];
    for (words, expected) in table {
        let output = folder.run(&words.split(' ').collect::<Vec<_>>());
        assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]), "{words}");
        assert_eq!(notes(output), expected, "{words}");
    }
    for words in ["7", "heap tree 7", "heap census 7", "page build 7 -o page.html"] {
        let output = folder.run(&words.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{words}");
        let said = notes(output);
        assert!(said.contains("memreport has no sockets on this system"), "{words}: {said}");
    }
}

#[test]
fn cargo_memreport_says_what_to_do_instead() {
    let run = |words: &[&str]| {
        let program = env!("CARGO_BIN_EXE_cargo-memreport");
        std::process::Command::new(program).arg("memreport").args(words).output().unwrap()
    };
    let output = run(&["run", "--release"]);
    assert_eq!(output.status.code(), Some(2));
    let said = notes(output);
    assert!(said.starts_with("cargo memreport: DMD does not track programs on this"), "{said}");
    let output = run(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8(output.stdout).unwrap().contains("about-memory heap.json.gz"));
}

#[test]
fn paths_have_drives_and_either_separator() {
    let folder = Folder::new().with("heap.json", REPORT).with("d.json", DUMP);
    std::fs::create_dir(folder.path("below")).unwrap();
    folder.write("below/heap.json", REPORT);
    let expected = folder.text(&["heap.json"]);
    let whole = folder.path("heap.json");
    assert!(whole.is_absolute() && whole.display().to_string().contains(":\\"), "{whole:?}");
    let slashes = whole.display().to_string().replace('\\', "/");
    for path in
        [whole.to_str().unwrap(), &slashes, ".\\heap.json", "below\\heap.json", "below/heap.json"]
    {
        assert_eq!(folder.text(&[path]), expected, "{path}");
    }
    // What is written has the separators of the system.
    let page = folder.path("page.html");
    folder.text(&["page", "build", whole.to_str().unwrap(), "-o", page.to_str().unwrap()]);
    assert!(page.is_file());
    // A missing file is no name of a program.
    let missing = format!("below{MAIN_SEPARATOR}none");
    let beside = format!("below{MAIN_SEPARATOR}heap.json");
    assert_eq!(
        notes(folder.run(&[&missing])),
        format!("about-memory: {missing}: no such file\n  files in that folder: {beside}\n")
    );
    let said = notes(folder.run(&["heap", "dominators", &missing]));
    assert!(said.starts_with(&format!("about-memory: {missing}: no such file")), "{said}");
    // The first line of dmd.py's text has neither folders nor the ending of programs.
    let text = folder.text(&["heap", "records", ".\\d.json"]);
    assert!(text.contains("about-memory heap records d.json"), "{text}");
}

#[test]
fn a_dump_of_linux_is_shown_without_its_libraries() {
    let folder = Folder::new().with("d.json", DUMP);
    let output = folder.run(&["heap", "tree", "d.json"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(text.contains("4,096") && text.contains("libshop.so +0x10"), "{text}");
    let said = notes(output);
    let named = Path::new("/usr/lib/x86_64-linux-gnu/libshop.so").display().to_string();
    assert!(said.contains(&format!("{named} cannot be read")), "{said}");
    assert!(said.contains("name a directory that has it with --symbols"), "{said}");
}

#[test]
fn a_share_that_a_dump_names_is_not_contacted() {
    let shares = DUMP.replace("/usr/lib/x86_64-linux-gnu", r"\\\\localhost\\share");
    let folder = Folder::new().with("d.json", shares);
    let said = notes(folder.run(&["heap", "tree", "d.json"]));
    assert!(said.contains("cannot be read (it is on another machine: copy it"), "{said}");
}

#[test]
fn powershell_completes_words() {
    let folder = Folder::new();
    let script = folder.text(&["completions", "powershell"]);
    assert!(script.contains("Register-ArgumentCompleter -Native -CommandName about-memory"));
    let output = folder
        .command()
        .env("COMPLETE", "powershell")
        .args(["--", "about-memory", "heap", "dom"])
        .output()
        .unwrap();
    let words = String::from_utf8(output.stdout).unwrap();
    assert!(words.starts_with("dominators\t"), "{words}");
}

#[test]
fn the_main_thread_has_the_stack_that_it_has_on_linux() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_about-memory")).unwrap();
    let number = |at: usize, bytes: usize| {
        program[at..at + bytes]
            .iter()
            .rev()
            .fold(0, |sum: usize, byte| sum << 8 | usize::from(*byte))
    };
    // The header is where its offset is; behind its 24 bytes, at 72, is SizeOfStackReserve.
    let header = number(0x3c, 4);
    assert_eq!(program[header..header + 4], *b"PE\0\0");
    assert_eq!(number(header + 24 + 72, 8), 8 << 20);
}
