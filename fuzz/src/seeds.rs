//! Reads the inputs that fuzzing begins with: a valid file of each form.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the folder with the seeds of a target.
#[must_use]
pub fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target)
}

/// Returns the inputs in a folder, in the order of their names.
///
/// # Errors
/// Returns an error if the folder or a file in it cannot be read.
pub fn read(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut paths = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    paths.iter().map(fs::read).collect()
}
