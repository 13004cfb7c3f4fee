//! The snapshots that a server keeps: the last ones, so that a page that measures all night does not fill the memory.

use crate::command::view::page::snapshot::PageSnapshot;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// At most so many snapshots are stored, and of so many bytes, but always one.
const MOMENTS: usize = 200;
const BYTES: usize = 512 << 20;

/// A snapshot with its number.
#[derive(Debug)]
pub(super) struct StoredSnapshot {
    pub(super) id: u64,
    /// The program that was measured; none for a file.
    pub(super) source: Option<usize>,
    pub(super) snapshot: PageSnapshot,
    /// What was found, once somebody has asked.
    pub(super) findings: OnceLock<Option<Vec<u8>>>,
}

/// Moments in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct SnapshotStore {
    next: u64,
    stored: VecDeque<Arc<StoredSnapshot>>,
}

impl SnapshotStore {
    /// Keeps a snapshot, and lets go of the oldest if need be. Answers its number.
    pub(super) fn add(&mut self, snapshot: PageSnapshot, source: Option<usize>) -> u64 {
        let id = self.next;
        self.next += 1;
        self.stored.push_back(Arc::new(StoredSnapshot {
            id,
            source,
            snapshot,
            findings: OnceLock::new(),
        }));
        while self.stored.len() > 1 && (self.stored.len() > MOMENTS || self.bytes() > BYTES) {
            self.stored.pop_front();
        }
        id
    }

    pub(super) fn get(&self, id: u64) -> Option<Arc<StoredSnapshot>> {
        self.stored.iter().find(|stored| stored.id == id).cloned()
    }

    /// The snapshots of the same program; of a file, all files.
    pub(super) fn course(&self, of: &StoredSnapshot) -> Vec<Arc<StoredSnapshot>> {
        self.stored.iter().filter(|stored| stored.source == of.source).cloned().collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &StoredSnapshot> {
        self.stored.iter().map(AsRef::as_ref)
    }

    fn bytes(&self) -> usize {
        self.iter().map(|stored| stored.snapshot.bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memreport::snapshot::read::Options;

    #[test]
    fn the_oldest_moments_give_way() {
        let report = br#"{"version":1,"hasMozMallocUsableSize":true,"reports":[]}"#;
        let mut store = SnapshotStore::default();
        for number in 0..MOMENTS as u64 + 3 {
            let snapshot =
                PageSnapshot::of_bytes("m".into(), report.to_vec(), Options::default()).unwrap();
            assert_eq!(store.add(snapshot, None), number);
        }
        assert_eq!(store.iter().count(), MOMENTS);
        assert!(store.get(2).is_none());
        assert!(store.get(3).is_some());
    }
}
