//! A temporary folder that is removed when its value is dropped.

use std::path::PathBuf;
use std::{fs, io};

/// A temporary folder of this process.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    /// Creates the folder.
    pub(crate) fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("memreport-xtask-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Left-over files in the temporary directory are no reason to fail.
        let _ = fs::remove_dir_all(&self.0);
    }
}
