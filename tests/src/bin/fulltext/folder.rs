//! The files of a folder.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Passes every file below `folder` of up to `largest` bytes to a callback, in the order of names.
/// Skips hidden files, links, and folders with these names.
pub(crate) fn walk(
    folder: &Path,
    skip: &[&str],
    largest: usize,
    each: &mut dyn FnMut(PathBuf),
) -> io::Result<()> {
    let named = |error| of(folder, &error);
    let entries = fs::read_dir(folder).map_err(named)?;
    let mut entries = entries.collect::<io::Result<Vec<_>>>().map_err(named)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        let kind = entry.file_type().map_err(|error| of(&path, &error))?;
        if name.starts_with('.') || kind.is_dir() && skip.contains(&&*name) {
            continue;
        }
        if kind.is_dir() {
            walk(&path, skip, largest, each)?;
        } else if kind.is_file() {
            let size = entry.metadata().map_err(|error| of(&path, &error))?.len();
            if usize::try_from(size).is_ok_and(|size| size <= largest) {
                each(path);
            }
        }
    }
    Ok(())
}

/// Returns the error with its path.
pub(crate) fn of(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Returns the text in these bytes; `None` if it is not UTF-8 or has a zero, like binary files.
pub(crate) fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_in_the_order_of_their_names() -> io::Result<()> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin");
        let mut names = Vec::new();
        walk(&here, &[], usize::MAX, &mut |path| names.push(path))?;
        assert!(names.is_sorted());
        assert!(names.contains(&here.join("fulltext/folder.rs")));
        let mut small = 0;
        walk(&here, &["fulltext"], usize::MAX, &mut |path| {
            small += 1;
            assert!(!path.starts_with(here.join("fulltext")));
        })?;
        assert!(small < names.len());
        walk(&here, &[], 0, &mut |path| panic!("{} is not empty", path.display()))
    }

    #[test]
    fn an_error_names_the_place() {
        let error = walk(Path::new("nowhere"), &[], 1, &mut |_| {}).expect_err("there is none");
        assert!(error.to_string().starts_with("nowhere: "), "{error}");
    }

    #[test]
    fn binary_files_have_no_text() {
        let table: [(&[u8], bool); 4] =
            [(b"", true), (b"fn main() {}", true), (b"\x7fELF\0", false), (b"\xff\xfe", false)];
        for (bytes, is_text) in table {
            assert_eq!(text(bytes).is_some(), is_text, "{bytes:?}");
        }
    }
}
