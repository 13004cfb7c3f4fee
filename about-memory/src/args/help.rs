//! Puts the groups of commands and the examples into the help.

use super::examples::EXAMPLES;
use crate::command::SCOPE;
use clap::Command;
use std::fmt::Write as _;

/// The groups of commands, in the order of the help.
const GROUPS: [(&str, &[&str]); 8] = [
    (
        "View",
        &[
            "show",
            "diff",
            "tree",
            "annotate",
            "recording",
            "explain-rss",
            "page open",
            "page build",
            "page serve",
        ],
    ),
    ("Run", &["run", "record", "preload"]),
    (
        "Process",
        &["ps", "top", "snapshot", "minimize", "track", "attach", "inspect", "log", "call"],
    ),
    (
        "Heap",
        &[
            "heap tree",
            "heap diff",
            "heap census",
            "heap coverage",
            "heap dominators",
            "heap why-alive",
            "heap records",
        ],
    ),
    ("Convert", &["export", "metrics", "symbolicate"]),
    ("Check", &["check"]),
    ("Fleet", &["agent", "fleet"]),
    ("Shell", &["completions", "man", "help"]),
];

/// Adds groups and examples to the definition of the command line.
pub(super) fn add(command: Command) -> Command {
    let mut command = command;
    // The generated command `help` is there after this.
    command.build();
    let groups = groups(&command);
    let command = match SCOPE {
        Some(scope) => command.after_help(scope),
        None => command,
    };
    let mut command = EXAMPLES.iter().fold(command, |command, (path, examples)| {
        at(command, &path.split(' ').collect::<Vec<_>>(), &|command| with(command, examples))
    });
    let header = *command.get_styles().get_header();
    command = command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\n{header}Arguments:{header:#}\n\
         {{positionals}}\n\n{header}Options:{header:#}\n{{options}}{{after-help}}"
    ));
    command
}

/// Changes the command at a path.
fn at(command: Command, path: &[&str], change: &dyn Fn(Command) -> Command) -> Command {
    match path.split_first() {
        None | Some((&"about-memory", _)) => change(command),
        // A feature that is off leaves commands out, and so does a system.
        Some((first, _)) if !has(&command, first) => command,
        Some((first, rest)) => command.mut_subcommand(first, |command| at(command, rest, change)),
    }
}

/// Returns whether there is a command of this name in sight.
fn has(command: &Command, name: &str) -> bool {
    command.get_subcommands().any(|sub| sub.get_name() == name && !sub.is_hide_set())
}

/// Adds examples at the end of the long help.
fn with(command: Command, examples: &str) -> Command {
    let header = *command.get_styles().get_header();
    let mut text =
        command.get_after_help().map_or_else(String::new, |text| format!("{}\n\n", text.ansi()));
    let _ = write!(text, "{header}Examples:{header:#}");
    for line in examples.lines().filter(|line| SCOPE.is_none() || !needs_program(line)) {
        let _ = write!(text, "\n  {line}");
    }
    command.after_long_help(text)
}

/// Returns whether an example starts a program, or asks one that runs.
fn needs_program(line: &str) -> bool {
    let words = ["about-memory run", "about-memory top", " indexer", " 4711"];
    words.iter().any(|word| line.contains(word)) || line == "about-memory page serve"
}

/// Returns the list of commands with their summaries, by groups.
fn groups(command: &Command) -> String {
    let (header, literal) =
        (*command.get_styles().get_header(), *command.get_styles().get_literal());
    let all: Vec<(String, String)> = visible(command);
    let widest = all.iter().map(|(path, _)| path.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut group = |name: &str, paths: &mut dyn Iterator<Item = &(String, String)>| {
        let mut paths = paths.peekable();
        if paths.peek().is_some() {
            let _ = write!(text, "\n{header}{name}:{header:#}\n");
        }
        for (path, summary) in paths {
            let _ = writeln!(text, "  {literal}{path:widest$}{literal:#}  {summary}");
        }
    };
    for (name, paths) in GROUPS {
        let found = |wanted: &&str| all.iter().find(|(path, _)| path == wanted);
        group(name, &mut paths.iter().filter_map(found));
    }
    let is_elsewhere = |path: &str| !GROUPS.iter().any(|(_, paths)| paths.contains(&path));
    group("Others", &mut all.iter().filter(|(path, _)| is_elsewhere(path)));
    text
}

/// Returns the paths of all commands in sight, apart from groups, with their summaries.
fn visible(command: &Command) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let name = sub.get_name();
        let inner = visible(sub);
        if inner.is_empty() || name == "help" {
            let summary = sub.get_about().map(ToString::to_string).unwrap_or_default();
            all.push((name.to_owned(), summary));
        } else {
            let inner = inner.into_iter().filter(|(path, _)| path != "help");
            all.extend(inner.map(|(path, summary)| (format!("{name} {path}"), summary)));
        }
    }
    all
}

#[cfg(all(test, feature = "serve", feature = "top"))]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::CommandFactory;

    #[test]
    fn examples_are_of_commands_that_are_there() {
        let all = Cli::command();
        for (path, _) in EXAMPLES {
            let words = path.split(' ').skip_while(|word| *word == "about-memory");
            let mut words = words;
            let found = words.try_fold(&all, |command, word| command.find_subcommand(word));
            assert!(found.is_some(), "{path}");
        }
    }
}
