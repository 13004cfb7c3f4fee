//! Tests what all commands share: their help, colours, notes, and words that are mistyped.
//!
//! The expected help is in `tests/help`; `BLESS=1 cargo test -p about-memory --test whole surface`
//! writes it anew, on Unix.

use about_memory::Cli;
use clap::Command as Definition;
use std::fs;
use std::path::{Path, PathBuf};
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

/// Returns the commands of both programs, of which one has none on other systems than Unix.
fn definitions() -> Vec<(&'static str, Definition)> {
    let all = [
        ("about-memory", Cli::command_with_help()),
        #[cfg(unix)]
        ("cargo memreport", <about_memory::CargoCli as clap::CommandFactory>::command()),
    ];
    let built = all.into_iter().map(|(name, mut definition)| {
        definition.build();
        (name, definition)
    });
    built.collect()
}

/// Returns the help of each command in sight.
fn helps(definition: Definition, name: &str) -> Vec<String> {
    let mut all = Vec::new();
    each(&mut definition.term_width(100), name, &mut |path, command| {
        let help = command.clone().term_width(100).render_long_help();
        let lines: Vec<_> =
            help.to_string().lines().map(|line| line.trim_end().to_owned()).collect();
        all.push(format!("$ {path} --help\n{}\n", lines.join("\n").trim_end()));
    });
    all
}

/// Returns the file with the expected help of a program.
fn expected(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help");
    folder.join(format!("{}.txt", name.replace(' ', "-")))
}

#[cfg(unix)]
#[test]
fn the_help_of_every_command_is_as_expected() {
    for (name, definition) in definitions() {
        let text = helps(definition, name).join("\n") + "\n";
        let file = expected(name);
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

/// Without the commands that need a program, and the examples with one, the help is that of Unix.
#[cfg(not(unix))]
#[test]
fn the_help_of_every_command_is_as_on_unix() {
    let text = fs::read_to_string(expected("about-memory")).unwrap();
    let on_unix: Vec<&str> = text.split_inclusive("\n\n$ ").collect();
    let needs_program = |line: &str| {
        let words = ["about-memory run", "about-memory top", " indexer", " 4711"];
        line.starts_with("  about-memory") && words.iter().any(|word| line.contains(word))
    };
    let mut count = 0;
    for (name, definition) in definitions() {
        for help in helps(definition, name) {
            let (title, lines) = help.split_once('\n').unwrap();
            let title = title.trim_start_matches("$ ");
            let found = on_unix.iter().find_map(|other| {
                let other = other.trim_start_matches("$ ").trim_end_matches("$ ");
                other.strip_prefix(title)?.strip_prefix('\n')
            });
            let found = found.unwrap_or_else(|| panic!("{title} is not on Unix"));
            // The list of commands, and the paragraph about what is missing, are others.
            let is_root = title == "about-memory --help";
            let start = if is_root { "Arguments:" } else { "Usage:" };
            let compared = |text: &str| {
                let text = &text[text.find(start).unwrap()..];
                let lines = text.lines().filter(|line| {
                    let is_scope = is_root
                        && (line.starts_with("On this system") || line.starts_with("and dumps"));
                    !needs_program(line) && *line != "  about-memory page serve" && !is_scope
                });
                lines.filter(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
            };
            assert_eq!(compared(lines), compared(found), "{title}");
            assert!(!lines.lines().any(needs_program), "{title}: {lines}");
            count += 1;
        }
    }
    assert!(count > 20, "only {count} commands were found");
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
    assert!(count > if cfg!(unix) { 35 } else { 20 }, "only {count} commands were found");
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
    assert!(count > if cfg!(unix) { 70 } else { 40 }, "only {count} examples were found");
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
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("about-memory: none.json: no such file\n"), "{message}");
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
    assert!(
        said(&["page", "biuld"])
            .contains("tip: a similar command exists: `about-memory page build`")
    );
    assert!(
        said(&["heap", "cencus"])
            .contains("tip: a similar command exists: `about-memory heap census`")
    );
    let group = said(&["heap", "cencus", "report.json"]);
    assert!(group.contains("tip: a similar command exists: `about-memory heap census`"), "{group}");
    let group = said(&["heap", "nothing", "report.json"]);
    assert!(group.contains("tip: `about-memory heap --help` lists the commands"), "{group}");
    let two = said(&["heap", "report.json", "report.json"]);
    let tip = "tip: to compare two: `about-memory heap diff report.json report.json`";
    assert!(two.contains(tip), "{two}");
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
