//! Words of the command line that clap alone does not understand: flags before the command, and
//! mistyped commands, which it takes for files.

use super::Cli;
use crate::error::Failure;
use clap::CommandFactory;
use clap::error::ErrorKind;
use std::ffi::OsString;
use std::path::{Path, PathBuf, is_separator};

/// Adds to the error of a file that does not exist the command that may have been meant: without a
/// command, words are files. `group` is empty or a group of commands with a blank behind it.
pub(super) fn name_similar_command(
    failure: Failure,
    word: Option<PathBuf>,
    group: &str,
) -> Failure {
    let all = Cli::command();
    let commands = all.find_subcommand(group.trim_end()).unwrap_or(&all);
    let word = word.filter(|word| !word.exists());
    let Some(path) = word.as_deref() else { return failure };
    let failure = match missing_feature(path) {
        Some(message) => return message.into(),
        None => failure,
    };
    let Some(word) = path.to_str() else { return failure };
    match similar_command(word, commands) {
        Some(name) => format!(
            "{}\n\n  tip: a similar command exists: `about-memory {group}{name}`",
            failure.with_causes()
        )
        .into(),
        None => failure,
    }
}

/// Returns the error for words such as `heap cencus FILE` and `heap FILE FILE`, where clap takes
/// the second for a file and says that the third conflicts with it; `None` for other words.
pub(super) fn unknown_command(words: &[OsString], commands: &clap::Command) -> Option<clap::Error> {
    let group = commands.find_subcommand(words.get(1)?)?;
    let word = words.get(2)?.to_str()?;
    if let [file, other] = words.get(2..4)?
        && group.find_subcommand("diff").is_some()
        && [file, other].iter().all(|file| Path::new(file).exists())
    {
        let group = group.get_name();
        let (file, other) = (file.display(), other.display());
        return Some(clap::Error::raw(
            ErrorKind::InvalidSubcommand,
            format!(
                "`{group}` shows one file\n\n  tip: to compare two: `about-memory {group} diff {file} {other}`\n"
            ),
        ));
    }
    if !group.has_subcommands()
        || word.starts_with('-')
        || group.find_subcommand(word).is_some()
        || Path::new(word).exists()
    {
        return None;
    }
    let name = similar_command(word, group);
    let group = group.get_name();
    let tip = match name {
        Some(name) => format!("a similar command exists: `about-memory {group} {name}`"),
        None => format!("`about-memory {group} --help` lists the commands"),
    };
    Some(clap::Error::raw(
        ErrorKind::InvalidSubcommand,
        format!("`{group}` has no command {word}, and no file has this name\n\n  tip: {tip}\n"),
    ))
}

/// Returns the message for a command that is left out of this program.
fn missing_feature(word: &Path) -> Option<String> {
    let is_left_out = |(name, is_there): &&(&str, bool)| Path::new(name) == word && !is_there;
    let (feature, _) = LEFT_OUT.iter().find(is_left_out)?;
    Some(format!("this about-memory was built without its feature `{feature}`"))
}

/// The commands that a feature of the same name adds, and whether it is on.
const LEFT_OUT: [(&str, bool); 2] =
    [("serve", cfg!(feature = "serve")), ("top", cfg!(feature = "top"))];

/// Returns the command whose name is the most similar to a word, if one is similar.
fn similar_command(word: &str, commands: &clap::Command) -> Option<String> {
    if word.contains('.') || word.contains(is_separator) {
        return None;
    }
    let below = |group: &clap::Command| {
        let group_name = group.get_name().to_owned();
        let inner = group.get_subcommands().map(|sub| sub.get_name().to_owned());
        inner.map(|name| (name.clone(), format!("{group_name} {name}"))).collect::<Vec<_>>()
    };
    let visible = commands.get_subcommands().filter(|sub| !sub.is_hide_set());
    let named = visible.flat_map(|sub| {
        let own = (sub.get_name().to_owned(), sub.get_name().to_owned());
        [own].into_iter().chain(below(sub))
    });
    let scored = named.map(|(name, path)| (strsim::jaro_winkler(word, &name), path));
    // Clap's threshold is lower, but its words must be commands.
    let similar = scored.filter(|(score, _)| *score > 0.85);
    // Of equal ones, a command outside of the groups.
    let rank = |(score, path): &(f64, String)| (*score, path.contains(' '));
    let best = similar.max_by(|a, b| {
        let ((a, a_is_inner), (b, b_is_inner)) = (rank(a), rank(b));
        a.total_cmp(&b).then(b_is_inner.cmp(&a_is_inner))
    });
    best.map(|(_, path)| path)
}

/// Returns the words with leading flags of every command behind the first other word: `-q ps` means
/// the command `ps`, not a file of that name.
pub(super) fn with_global_flags_last(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    let mut end = 1;
    while let Some(length) = words.get(end).and_then(flag) {
        end += length;
    }
    if end > 1 && words.get(end).is_some_and(|word| !word.as_encoded_bytes().starts_with(b"-")) {
        words[1..=end].rotate_right(1);
    }
    words
}

/// Returns the words with `fleet-export` for an `export` to a format of `memreport-fleet`, whose
/// options are its own.
pub(super) fn with_export_of_fleet(mut words: Vec<OsString>) -> Vec<OsString> {
    let is_theirs = |format: &OsString| format == "parquet" || format == "otlp";
    let has_format = words.windows(2).any(|pair| pair[0] == "--to" && is_theirs(&pair[1]))
        || words.iter().any(|word| word == "--to=parquet" || word == "--to=otlp");
    if let Some(command) = words.get_mut(1).filter(|word| has_format && *word == "export") {
        *command = "fleet-export".into();
    }
    words
}

/// Returns the number of words that a flag of every command takes; `None` if it is another word.
fn flag(word: &OsString) -> Option<usize> {
    match word.to_str()? {
        "-q" | "--quiet" | "--no-pager" => Some(1),
        "--color" => Some(2),
        word => word.starts_with("--color=").then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_command_is_named() {
        let commands = clap::Command::new("m")
            .subcommands(["diff", "snapshot"].map(clap::Command::new))
            .subcommand(
                clap::Command::new("heap").subcommands(["census", "diff"].map(clap::Command::new)),
            );
        let table = [
            ("dif", Some("diff")),
            ("snapshto", Some("snapshot")),
            ("cencus", Some("heap census")),
            ("heap.json.gz", None),
            ("indexer", None),
        ];
        for (word, expected) in table {
            assert_eq!(similar_command(word, &commands).as_deref(), expected, "{word}");
        }
    }

    #[test]
    fn exports_to_formats_of_the_other_program_are_recognised() {
        let table = [
            ("m export a.json --to parquet -o d", "m fleet-export a.json --to parquet -o d"),
            ("m export --to=otlp a.json", "m fleet-export --to=otlp a.json"),
            ("m export a.json --to pprof", "m export a.json --to pprof"),
            ("m show --to parquet", "m show --to parquet"),
            ("--to=parquet", "--to=parquet"),
        ];
        for (given, expected) in table {
            let words = with_export_of_fleet(given.split(' ').map(Into::into).collect());
            let expected: Vec<OsString> = expected.split(' ').map(Into::into).collect();
            assert_eq!(words, expected);
        }
    }

    #[test]
    fn flags_before_the_command_belong_to_it() {
        let table = [
            ("m -q ps", "m ps -q"),
            ("m --color never -q heap tree d", "m heap --color never -q tree d"),
            ("m --color=never d.json", "m d.json --color=never"),
            ("m ps -q", "m ps -q"),
            ("m -q", "m -q"),
            ("m -q --help", "m -q --help"),
            ("m -v -q d", "m -v -q d"),
            ("m --color", "m --color"),
        ];
        for (given, expected) in table {
            let words = with_global_flags_last(given.split(' ').map(Into::into));
            let expected: Vec<OsString> = expected.split(' ').map(Into::into).collect();
            assert_eq!(words, expected);
        }
    }
}
