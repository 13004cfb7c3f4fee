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

/// Returns the dump beside a file with a report, if it is there.
pub(crate) fn dump_of(report: &Path) -> Option<PathBuf> {
    // A running program may have the name of a dump, too.
    let dump = report.is_file().then(|| beside(report))?;
    dump.is_file().then_some(dump)
}

/// Returns the path of the dump that belongs to a report, as the tracker names it:
/// `heap.dmd.json.gz` for `heap.json.gz`.
pub(crate) fn beside(report: &Path) -> PathBuf {
    let name = report.file_name().unwrap_or_default().to_string_lossy();
    let ending = [".json.gz", ".gz", ".json"].into_iter().find(|ending| name.ends_with(ending));
    let ending = ending.unwrap_or_default();
    let stem = &name[..name.len() - ending.len()];
    let ending = if ending.contains("json") { ending.to_owned() } else { format!(".json{ending}") };
    report.with_file_name(format!("{stem}.dmd{ending}"))
}

/// Returns the working directory. Paths of the program below it are printed without it.
pub(crate) fn working_directory() -> Option<String> {
    std::env::current_dir().ok().map(|folder| folder.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dump_of_a_report_is_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let table = [
            ("heap.json.gz", "heap.dmd.json.gz"),
            ("heap.json", "heap.dmd.json"),
            ("heap.gz", "heap.dmd.json.gz"),
            ("heap", "heap.dmd.json"),
            ("a.json.b.json", "a.json.b.dmd.json"),
        ];
        for (report, dump) in table {
            assert_eq!(beside(&at(report)), at(dump), "{report}");
            #[cfg(unix)]
            assert_eq!(beside(&at(report)), dmd::dump::beside(&at(report)), "{report}");
        }
        fs::write(at("shop.dmd.json"), "").unwrap();
        assert_eq!(dump_of(&at("shop")), None, "no report, but perhaps a program");
        fs::write(at("shop"), "").unwrap();
        assert_eq!(dump_of(&at("shop")), Some(at("shop.dmd.json")));
    }

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
