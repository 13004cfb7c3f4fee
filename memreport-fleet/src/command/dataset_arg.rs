//! A dataset as it is named on the command line: a folder, or an address in a store.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use about_memory::Failure;

use crate::dataset::NewFile;
use crate::query::{Filter, LocalCopy};
use crate::schema::{Table, VERSION};
use crate::store;

/// A dataset whose files can be read.
pub(super) enum Dataset {
    /// A folder.
    Folder(PathBuf),
    /// The copy of a dataset in a store.
    Copy(LocalCopy),
}

impl Dataset {
    /// Opens a dataset. Of a dataset in a store, these tables are copied to `cache` first.
    pub(super) fn open(
        dataset: &OsStr,
        cache: Option<&Path>,
        tables: &[&'static Table],
        filter: &Filter,
        notes: &mut dyn Write,
    ) -> Result<Self, Failure> {
        let address = dataset.to_str().filter(|text| text.contains("://"));
        if let Some(address) = address.filter(|address| !address.starts_with("file://")) {
            let cache = cache.map(Path::to_owned).or_else(|| cache_folder("memreport-fleet"));
            let cache = cache.ok_or("there is no folder for the copy; --cache names one")?;
            return Ok(Dataset::Copy(LocalCopy::fetch(address, &cache, tables, filter, notes)?));
        }
        let folder = address.and_then(|address| address.strip_prefix("file://"));
        let folder = folder.map_or_else(|| PathBuf::from(dataset), PathBuf::from);
        let named = |error: std::io::Error| format!("{}: {error}", folder.display());
        let root = folder.join(format!("v{VERSION}"));
        match std::fs::read_dir(&root) {
            Ok(_) => Ok(Dataset::Folder(folder.canonicalize().map_err(named)?)),
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(named(error).into()),
            Err(_) => Err(format!(
                "{}: no dataset, which has a folder v{VERSION}; `export` and `agent` write one",
                folder.display()
            )
            .into()),
        }
    }

    /// Returns the folder with its files.
    pub(super) fn folder(&self) -> &Path {
        match self {
            Dataset::Folder(folder) => folder,
            Dataset::Copy(copy) => copy.folder(),
        }
    }

    /// Adds files to it; those of a copy, to the store.
    pub(super) fn add(&self, files: &[NewFile]) -> Result<(), Failure> {
        match self {
            Dataset::Folder(folder) => {
                for NewFile { path, bytes } in files {
                    store::add(&folder.join(path), bytes)?;
                }
                Ok(())
            }
            Dataset::Copy(copy) => copy.add(files),
        }
    }
}

/// Returns a folder of this name in the user's folder for caches.
pub(super) fn cache_folder(name: &str) -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")));
    Some(cache?.join(name))
}
