//! Holds the folder of a run's snapshots.

use super::outcome::SavedSnapshot;
use memreport::__private::copy_private;
use std::io;
use std::path::{Path, PathBuf};

/// The folder of the snapshots. A temporary one is removed after the run.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _temporary: tempfile::TempDir,
}

impl Folder {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn new(path: PathBuf, temporary: tempfile::TempDir) -> Self {
        Folder { path, _temporary: temporary }
    }
}

/// Copies the files of a snapshot to the folder of `--output`.
pub(super) fn keep(snapshot: SavedSnapshot, from: &Path, to: &Path) -> io::Result<SavedSnapshot> {
    if from == to {
        return Ok(snapshot);
    }
    let bring = |file: &Path| {
        let kept = to.join(file.file_name().unwrap_or_default());
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", kept.display()));
        copy_private(file, &kept).map_err(named)?;
        Ok::<_, io::Error>(kept)
    };
    Ok(SavedSnapshot { report: bring(&snapshot.report)?, dump: bring(&snapshot.dump)?, ..snapshot })
}
