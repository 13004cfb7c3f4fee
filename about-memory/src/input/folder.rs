//! Finds memory reports and dumps in folders.

use super::dump::DumpError;
use std::fs;
use std::path::{Path, PathBuf};

/// Lists files: those in folders too, apart from dumps and unfinished reports.
///
/// # Errors
///
/// A folder cannot be read or has no report.
pub(crate) fn reports(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut found: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        found.retain(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_report = name.ends_with(".json") || name.ends_with(".json.gz");
            is_report && !name.contains(".dmd.json") && !is_incomplete(path)
        });
        if found.is_empty() {
            return Err(format!("{}: no memory report is in it", path.display()));
        }
        found.sort();
        files.append(&mut found);
    }
    Ok(files)
}

/// Returns whether a file is still being written, or was left by a program that was killed.
fn is_incomplete(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().starts_with("incomplete-")
}

/// The first and the last dump of a folder.
pub(crate) struct FirstAndLast {
    pub(crate) first: PathBuf,
    pub(crate) last: PathBuf,
    /// The number of dumps in the folder.
    pub(crate) count: usize,
}

/// Finds the first and the last dump of a folder by their names, which contain the time if the
/// program saved them itself.
///
/// # Errors
///
/// The folder cannot be read or has fewer than two dumps.
pub(crate) fn first_and_last_dump(folder: &Path) -> Result<FirstAndLast, DumpError> {
    let entries =
        fs::read_dir(folder).map_err(|error| DumpError::Folder(folder.to_owned(), error))?;
    let is_dump = |path: &PathBuf| {
        let name = path.to_string_lossy();
        (name.ends_with(".dmd.json.gz") || name.ends_with(".dmd.json")) && !is_incomplete(path)
    };
    let dumps = entries.flatten().map(|entry| entry.path()).filter(is_dump);
    let mut dumps: Vec<PathBuf> = dumps.collect();
    dumps.sort();
    match &dumps[..] {
        [first, .., last] => {
            Ok(FirstAndLast { first: first.clone(), last: last.clone(), count: dumps.len() })
        }
        _ => Err(DumpError::TooFew(folder.to_owned(), dumps.len())),
    }
}

/// Returns the path of the dump beside a report: `heap.dmd.json.gz` for `heap.json.gz`.
pub(crate) fn dump_beside(report: &Path) -> Option<PathBuf> {
    let name = report.file_name()?.to_str()?;
    let (stem, ending) = name.split_at(name.find(".json")?);
    Some(report.with_file_name(format!("{stem}.dmd{ending}")))
}

/// Returns the working directory. Paths of the program below it are printed without it.
pub(crate) fn working_directory() -> Option<String> {
    std::env::current_dir().ok().map(|folder| folder.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_files_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.dmd.json", "c.dmd.json.gz", "c.json.gz", "d.dmd.json"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        for name in ["heap.json", "a.dmd.json.gz", "z.dmd.json"] {
            let name = format!("incomplete-7-0123456789abcdef-{name}");
            fs::write(folder.path().join(name), "").unwrap();
        }
        let FirstAndLast { first, last, count } = first_and_last_dump(folder.path()).unwrap();
        let at = |name: &str| folder.path().join(name);
        assert_eq!((first, last, count), (at("b.dmd.json"), at("d.dmd.json"), 3));
        assert_eq!(reports(&[folder.path().to_owned()]).unwrap(), [at("c.json.gz")]);
    }
}
