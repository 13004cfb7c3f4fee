//! The files of an agent that are not shipped yet.
//!
//! `pending/` has snapshots, `ready/` a folder for each batch. A name without a dot in front is
//! complete. Files are private, because they have contents of the heap.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

/// The files of an agent.
#[derive(Debug)]
pub(super) struct Spool {
    folder: PathBuf,
    limit: u64,
    /// The bytes of all files, kept up to date by the only agent that uses them.
    used: AtomicU64,
    pending: AtomicU64,
    /// Held as long as the agent runs.
    _lock: File,
}

/// The file of a batch that states its parts.
const MANIFEST: &str = "manifest.json";

/// A file of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// Its name in the folder of the batch.
    pub(super) local: String,
    /// Its path in the dataset.
    pub(super) path: String,
}

/// A batch that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) folder: PathBuf,
    /// The parts in the order in which they are shipped.
    pub(super) parts: Vec<Part>,
    /// The names of the pending snapshots that it has.
    pub(super) pending: Vec<String>,
}

impl Spool {
    /// Opens a folder, and takes it for this agent.
    pub(super) fn open(folder: &Path, limit: u64) -> io::Result<Self> {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", folder.display()))
        };
        for name in ["", "pending", "ready"] {
            let folder = folder.join(name);
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(named)?;
        }
        let lock = create(&folder.join("lock"), false).map_err(named)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            named(io::Error::new(io::ErrorKind::AddrInUse, "another agent uses this spool"))
        })?;
        let (used, pending) = (AtomicU64::new(0), AtomicU64::new(0));
        let spool = Spool { folder: folder.to_owned(), limit, used, pending, _lock: lock };
        spool.remove_incomplete()?;
        spool.recount()?;
        Ok(spool)
    }

    /// Removes what an agent that was killed had not completed.
    fn remove_incomplete(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.pending())?.chain(fs::read_dir(self.ready())?) {
            let entry = entry?;
            if !is_incomplete(&entry.file_name().to_string_lossy()) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Removes the pending snapshots of batches: the agent may have been killed in between.
    pub(super) fn reconcile(&self) -> io::Result<()> {
        for batch in self.batches()? {
            self.remove_pending(&batch.pending)?;
        }
        self.recount()
    }

    fn recount(&self) -> io::Result<()> {
        let of_folder = |folder: PathBuf| -> io::Result<u64> {
            let mut sum = 0;
            for entry in fs::read_dir(folder)? {
                // A shipped file may be gone meanwhile.
                sum += entry?.metadata().map_or(0, |metadata| metadata.len());
            }
            Ok(sum)
        };
        let pending = of_folder(self.pending())?;
        let mut ready = 0;
        for entry in fs::read_dir(self.ready())? {
            ready += of_folder(entry?.path()).unwrap_or(0);
        }
        self.pending.store(pending, Ordering::Release);
        self.used.store(pending + ready, Ordering::Release);
        Ok(())
    }

    fn pending(&self) -> PathBuf {
        self.folder.join("pending")
    }

    fn ready(&self) -> PathBuf {
        self.folder.join("ready")
    }

    /// Returns the bytes of all files.
    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Acquire)
    }

    /// Returns the bytes of pending snapshots.
    pub(super) fn pending_bytes(&self) -> u64 {
        self.pending.load(Ordering::Acquire)
    }

    /// Returns whether the limit is reached.
    pub(super) fn is_full(&self) -> bool {
        self.used() >= self.limit
    }

    /// Writes a pending snapshot. It is on disk when this returns.
    pub(super) fn add_pending(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let folder = self.pending();
        let unfinished = folder.join(format!(".{name}"));
        let written = write_durably(&unfinished, bytes)
            .and_then(|()| fs::rename(&unfinished, folder.join(name)))
            .and_then(|()| File::open(&folder)?.sync_all());
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written?;
        self.recount()
    }

    /// Returns the names of the pending snapshots, in their order.
    pub(super) fn pending_names(&self) -> io::Result<Vec<String>> {
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(self.pending())? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !is_incomplete(&name) {
                names.insert(name);
            }
        }
        Ok(names.into_iter().collect())
    }

    /// Reads a pending snapshot.
    pub(super) fn read_pending(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.pending().join(name))
    }

    /// Removes pending snapshots that are in a batch, or are defective.
    pub(super) fn remove_pending(&self, names: &[String]) -> io::Result<()> {
        for name in names {
            match fs::remove_file(self.pending().join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        File::open(self.pending())?.sync_all()?;
        self.recount()
    }

    /// Writes a batch, which appears at once, and removes its pending snapshots.
    pub(super) fn add_batch(
        &self,
        name: &str,
        files: &[(Part, Vec<u8>)],
        pending: &[String],
    ) -> io::Result<()> {
        let unfinished = self.ready().join(format!(".{name}"));
        let written = self.write_batch(&unfinished, files, pending);
        let written = written
            .and_then(|()| fs::rename(&unfinished, self.ready().join(name)))
            .and_then(|()| File::open(self.ready())?.sync_all());
        if written.is_err() {
            let _ = fs::remove_dir_all(&unfinished);
        }
        written?;
        self.remove_pending(pending)
    }

    fn write_batch(
        &self,
        folder: &Path,
        files: &[(Part, Vec<u8>)],
        pending: &[String],
    ) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        for (part, bytes) in files {
            write_durably(&folder.join(&part.local), bytes)?;
        }
        let part = |(part, _): &(Part, Vec<u8>)| json!({ "local": part.local, "path": part.path });
        let manifest = json!({
            "parts": files.iter().map(part).collect::<Vec<_>>(), "pending": pending,
        });
        write_durably(&folder.join(MANIFEST), manifest.to_string().as_bytes())
    }

    /// Returns the batches that are complete, oldest first.
    pub(super) fn batches(&self) -> io::Result<Vec<Ready>> {
        let mut batches = Vec::new();
        for entry in fs::read_dir(self.ready())? {
            let entry = entry?;
            if is_incomplete(&entry.file_name().to_string_lossy()) {
                continue;
            }
            match fs::read(entry.path().join(MANIFEST)) {
                Ok(text) => batches.push(ready(entry.path(), &text)?),
                // All is shipped, and the agent was killed before it removed the folder.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    fs::remove_dir_all(entry.path())?;
                    self.recount()?;
                }
                Err(error) => return Err(error),
            }
        }
        batches.sort_by(|a, b| a.folder.cmp(&b.folder));
        Ok(batches)
    }

    /// Returns whether the pending snapshots of a batch are gone, so that it may be shipped.
    pub(super) fn may_ship(&self, batch: &Ready) -> bool {
        batch.pending.iter().all(|name| !self.pending().join(name).exists())
    }

    /// Reads a part of a batch; `None` if it is shipped.
    pub(super) fn read_part(&self, batch: &Ready, part: &Part) -> io::Result<Option<Vec<u8>>> {
        match fs::read(batch.folder.join(&part.local)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes a part that is shipped.
    pub(super) fn remove_part(&self, batch: &Ready, part: &Part) -> io::Result<()> {
        fs::remove_file(batch.folder.join(&part.local))?;
        self.recount()
    }

    /// Removes a batch whose parts are all shipped.
    pub(super) fn remove_batch(&self, batch: &Ready) -> io::Result<()> {
        fs::remove_file(batch.folder.join(MANIFEST))?;
        fs::remove_dir_all(&batch.folder)?;
        self.recount()
    }
}

/// Returns whether a file could not be written because the disk, or this user's part of it, is
/// full.
pub(super) fn is_full_disk(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn is_incomplete(name: &str) -> bool {
    name.starts_with('.')
}

fn ready(folder: PathBuf, text: &[u8]) -> io::Result<Ready> {
    let manifest: Value = serde_json::from_slice(text)?;
    let texts = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let parts = manifest["parts"].as_array().into_iter().flatten();
    let parts =
        parts.map(|part| Part { local: texts(part, "local"), path: texts(part, "path") }).collect();
    let pending = manifest["pending"].as_array().into_iter().flatten();
    let pending = pending.filter_map(|name| Some(name.as_str()?.to_owned())).collect();
    Ok(Ready { folder, parts, pending })
}

/// Creates a private file. It never follows a link.
fn create(path: &Path, is_new: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(is_new).mode(0o600);
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    options.open(path)
}

/// Writes a private file, and waits until it is on disk.
fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = create(path, true)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(local: &str) -> (Part, Vec<u8>) {
        (Part { local: local.to_owned(), path: format!("v1/{local}") }, b"bytes".to_vec())
    }

    #[test]
    fn a_full_quota_is_a_full_disk() {
        for errno in [rustix::io::Errno::NOSPC, rustix::io::Errno::DQUOT] {
            assert!(is_full_disk(&io::Error::from(errno)), "{errno}");
        }
        assert!(!is_full_disk(&io::Error::from(rustix::io::Errno::ACCESS)));
    }

    #[test]
    fn a_killed_agent_leaves_no_half_and_no_double() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Spool::open(folder.path(), 1000).expect("it is new");
        assert!(Spool::open(folder.path(), 1000).is_err(), "one agent at a time");
        for name in ["1-a", "2-b", "3-c"] {
            spool.add_pending(name, b"snapshot").expect("there is space");
        }
        assert_eq!((spool.used(), spool.is_full()), (24, false));
        let pending = ["1-a".to_owned(), "2-b".to_owned()];
        spool.add_batch("1", &[part("x")], &pending).expect("there is space");
        assert_eq!(spool.pending_names().expect("names"), ["3-c"]);
        // Killed after the batch appeared, and before its pending snapshots were removed.
        spool.add_pending("1-a", b"snapshot").expect("there is space");
        fs::write(folder.path().join("pending/.4-d"), b"half").expect("there is space");
        fs::create_dir(folder.path().join("ready/.2")).expect("there is space");
        drop(spool);
        let spool = Spool::open(folder.path(), 1000).expect("nobody uses it");
        let batches = spool.batches().expect("one");
        assert!(!spool.may_ship(&batches[0]), "its snapshots could get into a second batch");
        spool.reconcile().expect("they are files");
        assert_eq!(spool.pending_names().expect("names"), ["3-c"]);
        assert!(spool.may_ship(&batches[0]));
        assert_eq!(batches.len(), 1);
        // Killed after the last part, and after the manifest was removed.
        let [batch] = &batches[..] else { panic!("one batch") };
        spool.remove_part(batch, &batch.parts[0]).expect("it is there");
        assert_eq!(spool.read_part(batch, &batch.parts[0]).expect("it is gone"), None);
        fs::remove_file(batch.folder.join(MANIFEST)).expect("it is there");
        assert!(spool.batches().expect("none").is_empty());
        assert!(!batch.folder.exists());
        assert_eq!(spool.used(), 8);
    }
}
