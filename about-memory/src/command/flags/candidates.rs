//! Completes words in a shell: running programs, processes and files.

use crate::input::live;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use std::ffi::OsStr;
use std::fs;

/// Returns the completer of an argument that is a running program with a socket.
pub(crate) fn programs() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| starting_with(word, &all_programs()))
}

/// Returns the completer of an argument that is a running program or a file.
pub(crate) fn programs_and_files() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| and_files(word, &all_programs()))
}

/// Returns the completer of an argument that is any process.
pub(crate) fn processes() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| starting_with(word, &all_processes()))
}

/// Returns the completer of an argument that is any process or a file.
pub(crate) fn processes_and_files() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| and_files(word, &all_processes()))
}

/// A process with its name.
type Named = (u32, String);

fn all_programs() -> Vec<Named> {
    live::names().into_iter().map(|(program, name)| (program.pid, name)).collect()
}

/// Returns the processes whose files this user may see.
fn all_processes() -> Vec<Named> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let own = std::process::id();
    pids.filter(|pid| *pid != own)
        .filter_map(|pid| {
            let file = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
            Some((pid, file.file_name()?.to_str()?.to_owned()))
        })
        .collect()
}

/// Returns the names and numbers that begin with a word. A number has its name as a description,
/// and a name that several processes have is left out: it would not be clear which is meant.
fn starting_with(word: &OsStr, all: &[Named]) -> Vec<CompletionCandidate> {
    let Some(word) = word.to_str() else { return Vec::new() };
    let is_unique = |name: &str| all.iter().filter(|(_, other)| other == name).count() == 1;
    let mut names: Vec<_> = all
        .iter()
        .filter(|(_, name)| name.starts_with(word) && is_unique(name))
        .map(|(pid, name)| CompletionCandidate::new(name).help(Some(pid.to_string().into())))
        .collect();
    let numbers = all.iter().filter(|(pid, _)| pid.to_string().starts_with(word));
    names.extend(numbers.map(|(pid, name)| {
        CompletionCandidate::new(pid.to_string()).help(Some(name.clone().into()))
    }));
    names
}

fn and_files(word: &OsStr, all: &[Named]) -> Vec<CompletionCandidate> {
    let mut candidates = PathCompleter::any().complete(word);
    candidates.extend(starting_with(word, all));
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_completed_if_they_are_clear() {
        let all =
            || vec![(17, "shop".to_owned()), (18, "till".to_owned()), (19, "till".to_owned())];
        let complete = |word: &str| {
            let found = starting_with(OsStr::new(word), &all());
            let words = found.iter().map(|one| one.get_value().to_str().unwrap().to_owned());
            words.collect::<Vec<_>>()
        };
        assert_eq!(complete(""), ["shop", "17", "18", "19"]);
        assert_eq!(complete("s"), ["shop"]);
        assert_eq!(complete("t"), [""; 0]);
        assert_eq!(complete("19"), ["19"]);
        assert_eq!(complete("x"), [""; 0]);
    }
}
