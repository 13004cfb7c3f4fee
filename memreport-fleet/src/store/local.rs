//! Files of a dataset in a folder of this machine: private, and under their names when complete.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use memreport::__private::PrivateFile;

/// Adds a private file to a dataset, in folders that only this user may enter, and returns it.
///
/// # Errors
///
/// It cannot be written. The message has the path.
pub fn add(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let added = create_folders(path.parent().unwrap_or(path)).and_then(|()| {
        let unfinished = unfinished(path);
        let file = write_private(&unfinished, bytes)?;
        let renamed = fs::rename(&unfinished, path);
        if renamed.is_err() {
            // The reason is the first error.
            let _ = fs::remove_file(&unfinished);
        }
        renamed.map(|()| file)
    });
    added.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// Returns the name of a file of a dataset until it is complete. Engines read every file whose name
/// ends in `.parquet`.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    name.into()
}

/// Creates a folder, and those above it, for this user alone. Folders that exist are left as they
/// are.
pub(super) fn create_folders(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut file = PrivateFile::create(path)?;
    file.write_all(bytes)?;
    file.keep()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_of_a_dataset_is_private_and_replaces_an_older_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("v1/reports/x.parquet");
        for text in ["one", "two"] {
            add(&path, text.as_bytes()).expect("there is space");
            assert_eq!(fs::read(&path).expect("it is there"), text.as_bytes());
        }
        let mode =
            |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        let above: Vec<u32> = path.ancestors().skip(1).take(2).map(mode).collect();
        assert_eq!(above, [0o700, 0o700]);
        let names = fs::read_dir(path.parent().expect("a folder")).expect("it is there");
        assert_eq!(names.count(), 1, "nothing incomplete is left");
    }

    #[test]
    fn an_incomplete_file_of_a_dataset_is_read_by_no_engine_and_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.parquet");
        assert!(!unfinished(&path).to_string_lossy().ends_with(".parquet"));
        fs::create_dir(&path).expect("there is space");
        add(&path, b"new").expect_err("a folder has the name");
        assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 1);
    }
}
