//! Tests what all commands share: their help, colours, notes, and words that are mistyped.
//!
//! The expected help is in `tests/help`; `BLESS=1 cargo test -p about-memory --test surface` writes
//! it anew.

use about_memory::{CargoCli, Cli};
use clap::{Command as Definition, CommandFactory};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Calls a function with each command in sight, and its path.
fn each(command: &mut Definition, path: &str, seen: &mut dyn FnMut(&str, &mut Definition)) {
    seen(path, command);
    for below in command.get_subcommands_mut() {
        if !below.is_hide_set() && below.get_name() != "help" {
            let path = format!("{path} {}", below.get_name());
            each(below, &path, seen);
        }
    }
}

/// Returns the commands of both programs.
fn definitions() -> [(&'static str, Definition); 2] {
    let (mut own, mut of_cargo) = (Cli::command_with_help(), CargoCli::command());
    own.build();
    of_cargo.build();
    [("about-memory", own), ("cargo memreport", of_cargo)]
}

#[test]
fn the_help_of_every_command_is_as_expected() {
    for (name, definition) in definitions() {
        let mut text = String::new();
        each(&mut definition.term_width(100), name, &mut |path, command| {
            let help = command.clone().term_width(100).render_long_help();
            let lines: Vec<_> =
                help.to_string().lines().map(|line| line.trim_end().to_owned()).collect();
            let _ = writeln!(text, "$ {path} --help\n{}\n", lines.join("\n").trim_end());
        });
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/help")
            .join(format!("{}.txt", name.replace(' ', "-")));
        if std::env::var_os("BLESS").is_some() {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &text).unwrap();
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        if text != expected {
            let differs = text.lines().zip(expected.lines()).find(|(new, old)| new != old);
            let place = differs
                .map_or("its length".to_owned(), |(new, old)| format!("`{new}`, was `{old}`"));
            panic!("{}: the help has changed: {place}; BLESS=1 writes it anew", file.display());
        }
    }
}

#[test]
fn every_command_has_a_short_summary_and_examples() {
    let mut count = 0;
    for (name, mut definition) in definitions() {
        each(&mut definition, name, &mut |path, command| {
            count += 1;
            if path != name {
                let summary = command.get_about().unwrap().to_string();
                assert!(summary.chars().count() <= 60, "{path}: {summary}");
                assert!(!summary.ends_with('.'), "{path}: {summary}");
            }
            let help = command.clone().render_long_help().to_string();
            let examples =
                help.split_once("Examples:\n").unwrap_or_else(|| panic!("{path} has no examples"));
            let words =
                path.trim_start_matches("about-memory ").trim_start_matches("cargo memreport ");
            assert!(examples.1.contains(words), "{path}: {}", examples.1);
        });
    }
    assert!(count > 35, "only {count} commands were found");
}

/// The examples are command lines that parse.
#[test]
fn the_examples_are_right() {
    let mut count = 0;
    let mut parse = |definition: &Definition, words: Vec<&str>| {
        count += 1;
        if let Err(error) = definition.clone().try_get_matches_from(&words) {
            panic!("{words:?}: {error}");
        }
    };
    for (name, mut definition) in definitions() {
        let whole = definition.clone();
        each(&mut definition, name, &mut |_, command| {
            let help = command.clone().render_long_help().to_string();
            let (_, examples) = help.split_once("Examples:\n").unwrap();
            for line in examples.lines().map(str::trim).filter(|line| !line.is_empty()) {
                // A comment follows after several blanks.
                let line = line.split("  ").next().unwrap();
                let line = line.split(['|', '>']).next().unwrap().trim();
                let words: Vec<&str> =
                    line.split(' ').filter(|word| !word.starts_with("DMD=")).collect();
                match words[..] {
                    ["about-memory", ..] if name == "about-memory" => parse(&whole, words),
                    ["cargo", "memreport", ..] if name != "about-memory" => {
                        parse(&whole, words[1..].to_vec());
                    }
                    _ => {}
                }
            }
        });
    }
    assert!(count > 70, "only {count} examples were found");
}

const REPORT: &str = r#"{"version": 1, "hasMozMallocUsableSize": true, "reports": [
    {"process": "p (pid 1)", "path": "explicit/a", "kind": 1, "units": 0, "amount": 4000000, "description": "d"},
    {"process": "p (pid 1)", "path": "heap-allocated", "kind": 2, "units": 0, "amount": 5000000, "description": "d"}]}"#;

const DUMP: &str = r##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "live"},
    "blockList": [{"req": 100, "slop": 12, "alloc": "A"}],
    "traceTable": {"A": ["B"]}, "frameTable": {"B": "#00: main (main.rs:1)"}}"##;

/// Runs the program in a folder with a report and a dump.
fn run(words: &[&str], variables: &[(&str, &str)]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("report.json"), REPORT).unwrap();
    fs::write(folder.path().join("dump.json"), DUMP).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_about-memory"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command.args(words).current_dir(&folder).envs(variables.iter().copied()).output().unwrap()
}

#[test]
fn colours_come_to_a_pipe_on_request_only() {
    type Row = (&'static [&'static str], &'static [(&'static str, &'static str)], bool);
    let table: [Row; 7] = [
        (&["report.json"], &[], false),
        (&["report.json", "--color=always"], &[], true),
        (&["report.json", "--color", "always"], &[("NO_COLOR", "1")], true),
        (&["--color", "always", "show", "report.json"], &[], true),
        (&["report.json"], &[("CLICOLOR_FORCE", "1")], true),
        (&["report.json"], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
        (&["report.json", "--color=never"], &[("CLICOLOR_FORCE", "1")], false),
    ];
    for (words, variables, expected) in table {
        let output = run(words, variables);
        assert!(output.status.success(), "{words:?}");
        assert_eq!(output.stdout.contains(&0x1b), expected, "{words:?} {variables:?}");
    }
}

#[test]
fn notes_have_one_prefix_and_can_be_switched_off() {
    let noted: [&[&str]; 2] = [&["dump.json"], &["-q", "dump.json"]];
    let notes = noted.map(|words| String::from_utf8(run(words, &[]).stderr).unwrap());
    assert_eq!(notes, ["note: a dump of the heap, shown as by `heap tree`\n", ""]);
    // An error is no note.
    let output = run(&["--quiet", "none.json"], &[]);
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "about-memory: none.json: no such file\n"
    );
}

#[test]
fn what_is_mistyped_is_corrected() {
    let said = |words: &[&str]| {
        let output = run(words, &[]);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(
        said(&["dif", "a", "b"]).contains("tip: a similar command exists: `about-memory diff`")
    );
    assert!(said(&["page", "biuld"]).contains("'build'"));
    assert!(said(&["diff", "report.json", "--sinse", "b"]).contains("'--since'"));
    assert!(said(&["report.json", "--units", "byte"]).contains("'bytes'"));
    assert!(!said(&["none.json"]).contains("tip:"));
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man");
    let output = run(&["man", "--output", pages.to_str().unwrap()], &[]);
    assert!(output.status.success());
    let count = fs::read_dir(&pages).unwrap().count();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        format!("wrote {count} pages to {}\n", pages.display())
    );
    for entry in fs::read_dir(&pages).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{text}");
    }
    let tree = fs::read_to_string(pages.join("about-memory-heap-tree.1")).unwrap();
    assert!(tree.contains("Examples:") && tree.contains("\\-\\-by"), "{tree}");
    let printed = run(&["man", "heap", "tree"], &[]).stdout;
    assert_eq!(String::from_utf8(printed).unwrap(), tree);
}
