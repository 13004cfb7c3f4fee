//! Names what exists where a file was named that does not.

use super::live;
use std::fs;
use std::path::{Path, PathBuf};

/// The most files, and the most programs, that a message names.
const MOST: usize = 5;
/// The most files of a folder whose kind is looked at.
const LOOKED_AT: usize = 200;

/// Returns a message for a file that does not exist: the wanted files beside it, and the running
/// programs that could have been meant.
pub(crate) fn describe(path: &Path, is_wanted: &dyn Fn(&Path) -> bool) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return format!("no such file; there is no folder {} either", folder.display());
    }
    let word = path.file_name().unwrap_or_default().to_string_lossy();
    let mut lines = vec![match is_name(path) {
        true => "no such file, and no running program has this name".to_owned(),
        false => "no such file".to_owned(),
    }];
    let files = files_in(folder, is_wanted);
    let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    lines.extend(list("files in that folder", names, &word));
    if is_name(path) {
        let names =
            live::names().into_iter().map(|(program, name)| format!("{name} ({})", program.pid));
        lines.extend(list("running programs", names.collect(), &word));
    }
    lines.join("\n  ")
}

/// Returns whether a word could be the name of a program, as `open::running` decides. Running
/// programs answer on Unix alone.
fn is_name(path: &Path) -> bool {
    cfg!(unix) && path.to_str().is_some_and(|name| !name.contains(['/', '.']))
}

/// Returns the wanted files of a folder.
fn files_in(folder: &Path, is_wanted: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| match folder == Path::new(".") {
        true => PathBuf::from(entry.file_name()),
        false => entry.path(),
    });
    paths.take(LOOKED_AT).filter(|path| is_wanted(path)).collect()
}

/// Returns a line with the names, those most similar to a word first; none without names.
fn list(what: &str, mut names: Vec<String>, word: &str) -> Option<String> {
    names.sort();
    names.sort_by(|a, b| similarity(b, word).total_cmp(&similarity(a, word)));
    let more = names.len().saturating_sub(MOST);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let shown: Vec<_> = names.into_iter().take(MOST).collect();
    (!shown.is_empty()).then(|| format!("{what}: {}{more}", shown.join(", ")))
}

fn similarity(name: &str, word: &str) -> f64 {
    strsim::jaro_winkler(name, word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_names_come_first() {
        let names = ["alpha", "before.json", "gamma"].map(str::to_owned).to_vec();
        assert_eq!(list("here", names, "befor"), Some("here: before.json, alpha, gamma".into()));
        let many = (0..7).map(|number| format!("file-{number}")).collect();
        let text = list("here", many, "file-6").unwrap();
        assert_eq!(text, "here: file-6, file-0, file-1, file-2, file-3 and 2 more");
        assert_eq!(list("here", Vec::new(), "a"), None);
    }
}
