//! Stores the last snapshots of a server, within a limit of memory.

use crate::command::view::page::snapshot::PageSnapshot;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};

/// The largest number of snapshots, and of their bytes. At least one is kept.
const MAX_SNAPSHOTS: usize = 200;
const MAX_BYTES: usize = 512 << 20;

/// A snapshot with its number.
#[derive(Debug)]
pub(super) struct StoredSnapshot {
    pub(super) id: u64,
    /// The program that was measured; none for a file.
    pub(super) source: Option<usize>,
    pub(super) snapshot: PageSnapshot,
    /// The pieces of the findings, gzipped, once a page has requested one.
    pub(super) findings: OnceLock<Option<BTreeMap<&'static str, Vec<u8>>>>,
}

/// Snapshots in the order of arrival.
#[derive(Debug, Default)]
pub(super) struct SnapshotStore {
    next: u64,
    stored: VecDeque<Arc<StoredSnapshot>>,
}

impl SnapshotStore {
    /// Adds a snapshot, and removes the oldest ones beyond the limits. Returns its number.
    pub(super) fn add(&mut self, snapshot: PageSnapshot, source: Option<usize>) -> u64 {
        let id = self.next;
        self.next += 1;
        self.stored.push_back(Arc::new(StoredSnapshot {
            id,
            source,
            snapshot,
            findings: OnceLock::new(),
        }));
        while is_beyond_limits(self.stored.len(), self.bytes()) {
            self.stored.pop_front();
        }
        id
    }

    pub(super) fn get(&self, id: u64) -> Option<Arc<StoredSnapshot>> {
        self.stored.iter().find(|stored| stored.id == id).cloned()
    }

    /// Returns the snapshots of the same program; of a file, the snapshots of all files.
    pub(super) fn same_source(&self, of: &StoredSnapshot) -> Vec<Arc<StoredSnapshot>> {
        self.stored.iter().filter(|stored| stored.source == of.source).cloned().collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &StoredSnapshot> {
        self.stored.iter().map(AsRef::as_ref)
    }

    fn bytes(&self) -> usize {
        self.iter().map(|stored| stored.snapshot.bytes()).sum()
    }
}

/// Returns whether this many snapshots are too many. One alone is not, whatever its size.
fn is_beyond_limits(snapshots: usize, bytes: usize) -> bool {
    snapshots > 1 && (snapshots > MAX_SNAPSHOTS || bytes > MAX_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use memreport::snapshot::read::Options;

    #[test]
    fn one_snapshot_is_kept_whatever_its_size() {
        let table = [
            (1, usize::MAX, false),
            (2, MAX_BYTES, false),
            (2, MAX_BYTES + 1, true),
            (MAX_SNAPSHOTS, 0, false),
            (MAX_SNAPSHOTS + 1, 0, true),
        ];
        for (snapshots, bytes, expected) in table {
            assert_eq!(is_beyond_limits(snapshots, bytes), expected, "{snapshots} of {bytes}");
        }
    }

    #[test]
    fn the_oldest_moments_give_way() {
        let report = br#"{"version":1,"hasMozMallocUsableSize":true,"reports":[]}"#;
        let mut store = SnapshotStore::default();
        for number in 0..MAX_SNAPSHOTS as u64 + 3 {
            let snapshot =
                PageSnapshot::of_bytes("m".into(), report.to_vec(), Options::default()).unwrap();
            assert_eq!(store.add(snapshot, None), number);
        }
        assert_eq!(store.iter().count(), MAX_SNAPSHOTS);
        assert!(store.get(2).is_none());
        assert!(store.get(3).is_some());
    }
}
