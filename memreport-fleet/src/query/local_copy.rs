//! A local copy of the part of a dataset that a question reads, where the dataset is in a store.
//!
//! Engines reach stores in ways of their own, each with other credentials, and some with an
//! extension that must be downloaded. So the files are fetched as the agent ships them, once: a
//! file that has not changed is not fetched again. Files that are no longer in the store are
//! removed.

use std::collections::{HashMap, HashSet};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use about_memory::Failure;
use futures::StreamExt;
use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};
use tokio::runtime::Runtime;

use super::Filter;
use crate::dataset::{NewFile, day_of, folder};
use crate::schema::Table;
use crate::store::{Store, StoredFile, add};

/// The number of files that are fetched at once.
const AT_ONCE: usize = 16;

/// A local copy of a dataset in a store. While it exists, no other question changes it.
#[derive(Debug)]
pub struct LocalCopy {
    folder: PathBuf,
    store: Store,
    runtime: Runtime,
    lock: File,
}

/// The numbers of files that were listed, fetched and removed.
#[derive(Debug, Default)]
struct Changes {
    listed: usize,
    fetched: usize,
    bytes: u64,
    removed: usize,
}

impl LocalCopy {
    /// Brings the copy up to date with these tables of the dataset at an address.
    ///
    /// # Errors
    ///
    /// The store refuses or cannot be reached, or the folder cannot be written.
    pub fn fetch(
        address: &str,
        cache: &Path,
        tables: &[&'static Table],
        filter: &Filter,
        notes: &mut dyn Write,
    ) -> Result<Self, Failure> {
        let store = Store::open(address)?;
        let name = name_of(address, std::env::vars());
        let folder = cache.join(name);
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", folder.display()))
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(named)?;
        let lock = File::open(&folder).map_err(named)?;
        // Others may ask of the same copy, but not while files change.
        flock(&lock, FlockOperation::LockExclusive)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let copy = LocalCopy { folder, store, runtime, lock };
        let changes = copy
            .runtime
            .block_on(copy.update(tables, filter))
            .map_err(|error| format!("{address}: {error}"))?;
        if changes.listed == 0 && filter.is_empty() {
            let names: Vec<_> = tables.iter().map(|table| table.name).collect();
            let names = names.join(", ");
            return Err(format!("{address}: no files of the tables that are read: {names}").into());
        }
        flock(&copy.lock, FlockOperation::LockShared)?;
        let Changes { listed, fetched, bytes, removed } = changes;
        writeln!(
            notes,
            "{listed} files in {address}: fetched {fetched} with {bytes} bytes, removed {removed}; \
             the copy is {}",
            copy.folder.display()
        )?;
        Ok(copy)
    }

    /// Returns its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds files to the store. The next copy has them.
    ///
    /// # Errors
    ///
    /// The store refuses or cannot be reached.
    pub fn add(&self, files: &[NewFile]) -> Result<(), Failure> {
        for NewFile { path, bytes } in files {
            let put = self.runtime.block_on(self.store.put(path, bytes.clone()));
            put.map_err(|error| format!("{path}: {error}"))?;
        }
        Ok(())
    }

    async fn update(&self, tables: &[&'static Table], filter: &Filter) -> Result<Changes, Failure> {
        let store = &self.store;
        let mut changes = Changes::default();
        // Snapshots are shipped last, so they are listed first: what is listed has its other rows.
        for table in tables.iter().rev() {
            let service = filter.service.as_deref().filter(|_| table.has_key);
            let below = folder(table, service);
            let mut files = store.list(&below).await?;
            files.retain(|file| is_file_of_dataset(&file.path) && filter.has_day(&file.path));
            changes.listed += files.len();
            changes.removed += self.remove_others(&below, &files, filter)?;
            files.retain(|file| !self.has(file));
            let mut fetches = futures::stream::iter(files.iter().map(|file| async move {
                let bytes = store.get(&file.path).await?;
                self.keep(file, &bytes).map(|()| bytes.len() as u64)
            }))
            .buffer_unordered(AT_ONCE);
            while let Some(fetched) = fetches.next().await {
                changes.fetched += 1;
                changes.bytes += fetched?;
            }
        }
        Ok(changes)
    }

    /// Returns whether the copy has a file as it is in the store.
    fn has(&self, file: &StoredFile) -> bool {
        let Ok(metadata) = fs::metadata(self.folder.join(&file.path)) else { return false };
        let is_same_time =
            metadata.modified().is_ok_and(|time| seconds(time) == seconds(file.written));
        metadata.len() == file.size && is_same_time
    }

    fn keep(&self, file: &StoredFile, bytes: &[u8]) -> Result<(), Failure> {
        let copy = add(&self.folder.join(&file.path), bytes)?;
        Ok(copy.set_modified(file.written)?)
    }

    /// Removes the files below a folder that are not in the store, if the filter has their day.
    fn remove_others(
        &self,
        below: &str,
        files: &[StoredFile],
        filter: &Filter,
    ) -> io::Result<usize> {
        let known: HashSet<PathBuf> =
            files.iter().map(|file| self.folder.join(&file.path)).collect();
        let mut removed = 0;
        let mut folders = vec![self.folder.join(below)];
        while let Some(folder) = folders.pop() {
            let entries = match fs::read_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries?,
            };
            for entry in entries {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if !known.contains(&path) && filter.has_day(&path.to_string_lossy()) {
                    fs::remove_file(&path)?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }
}

impl Filter {
    fn is_empty(&self) -> bool {
        self.service.is_none() && self.since.is_none() && self.until.is_none()
    }

    /// Returns whether a file may have rows of its days. Files without a day may.
    fn has_day(&self, path: &str) -> bool {
        let Some(day) = day_of(path) else { return true };
        self.since.as_deref().is_none_or(|since| day >= since)
            && self.until.as_deref().is_none_or(|until| day <= until)
    }
}

/// Returns whether a path stays within the copy, and is a file that engines read.
fn is_file_of_dataset(path: &str) -> bool {
    let is_plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    is_plain && path.ends_with(".parquet")
}

/// Returns the whole seconds of a time, which every file system keeps.
fn seconds(time: SystemTime) -> Option<u64> {
    Some(time.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs())
}

/// Returns the name of the copy of an address. Buckets of the same name at other endpoints or of
/// other accounts have other copies.
fn name_of(address: &str, variables: impl Iterator<Item = (String, String)>) -> String {
    let is_place = |name: &str| {
        ["AWS_", "AZURE_", "AZURITE_", "GOOGLE_"].iter().any(|start| name.starts_with(start))
            && ["ENDPOINT", "URL", "ACCOUNT_NAME"].iter().any(|part| name.contains(part))
    };
    let places: HashMap<String, String> = variables.filter(|(name, _)| is_place(name)).collect();
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort();
    let hash = Sha256::digest(format!("{address}\n{places:?}"));
    let hash: String = hash[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    let plain: String = address
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' })
        .take(64)
        .collect();
    format!("{plain}-{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{REPORTS, SNAPSHOTS, STACKS};

    #[test]
    fn a_copy_has_what_the_store_has_and_fetches_it_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let (data, cache) = (folder.path().join("data"), folder.path().join("cache"));
        let address = format!("file://{}", data.display());
        let path = |day: u32| {
            format!("v1/snapshots/service=a/version=1/date=2026-01-0{day}/host=h/x.parquet")
        };
        let put = |path: &str, text: &str| {
            add(&data.join(path), text.as_bytes()).expect("there is space");
        };
        (1..4).for_each(|day| put(&path(day), "one"));
        put("v1/reports/service=b/version=1/date=2026-01-01/host=h/x.parquet", "two");
        put("v1/snapshots/note.txt", "no table");
        let all = Filter::default();
        let fetch = |tables: &[&'static Table], filter: &Filter| {
            let mut notes = Vec::new();
            let copy = LocalCopy::fetch(&address, &cache, tables, filter, &mut notes);
            let copy = copy.expect("it can be read");
            let notes = String::from_utf8(notes).expect("it is text");
            let (_, numbers) = notes.split_once(": fetched ").expect("it states numbers");
            let numbers = numbers.split(';').next().unwrap_or_default().to_owned();
            (copy.folder().to_owned(), numbers)
        };
        let first = Filter { until: Some("2026-01-02".to_owned()), ..Filter::default() };
        assert_eq!(fetch(&[&SNAPSHOTS], &first).1, "2 with 6 bytes, removed 0");
        assert_eq!(fetch(&[&STACKS, &REPORTS, &SNAPSHOTS], &all).1, "2 with 6 bytes, removed 0");
        assert_eq!(fetch(&[&REPORTS, &SNAPSHOTS], &all).1, "0 with 0 bytes, removed 0");
        fs::remove_file(data.join(path(2))).expect("it is there");
        put(&path(3), "other");
        let (copy, numbers) = fetch(&[&SNAPSHOTS], &all);
        assert_eq!(numbers, "1 with 5 bytes, removed 1");
        assert_eq!(fs::read(copy.join(path(3))).expect("it is there"), b"other");
        assert!(!copy.join(path(2)).exists() && copy.join(path(1)).exists());
        let other = Filter { service: Some("b".to_owned()), ..Filter::default() };
        assert_eq!(fetch(&[&SNAPSHOTS], &other).1, "0 with 0 bytes, removed 0");
        assert!(copy.join(path(1)).exists(), "another service's files stay");
    }

    #[test]
    fn no_path_leaves_the_copy_and_each_endpoint_has_its_own() {
        for path in ["../x.parquet", "/x.parquet", "v1/a/../../../x.parquet", "v1/x.txt"] {
            assert!(!is_file_of_dataset(path), "{path}");
        }
        let name = |endpoint: &str| {
            let variables = [("AWS_ENDPOINT", endpoint), ("AWS_SECRET_ACCESS_KEY", endpoint)];
            name_of("s3://a/b", variables.map(|(a, b)| (a.to_owned(), b.to_owned())).into_iter())
        };
        assert_eq!(name("one"), name("one"));
        assert_ne!(name("one"), name("two"));
        assert!(name("one").starts_with("s3---a-b-"));
    }
}
