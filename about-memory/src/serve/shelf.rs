//! The moments that a server keeps: the last ones, so that a page that measures all night does not fill the memory.

use crate::html::moment::Moment;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// At most so many moments are kept, and of so many bytes, but always one.
const MOMENTS: usize = 200;
const BYTES: usize = 512 << 20;

/// A moment with its number.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) id: u64,
    /// The program that was measured; none for a file.
    pub(super) source: Option<usize>,
    pub(super) moment: Moment,
    /// What was found, once somebody has asked.
    pub(super) findings: OnceLock<Option<Vec<u8>>>,
}

/// Moments in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    next: u64,
    kept: VecDeque<Arc<Kept>>,
}

impl Shelf {
    /// Keeps a moment, and lets go of the oldest if need be. Answers its number.
    pub(super) fn add(&mut self, moment: Moment, source: Option<usize>) -> u64 {
        let id = self.next;
        self.next += 1;
        self.kept.push_back(Arc::new(Kept { id, source, moment, findings: OnceLock::new() }));
        while self.kept.len() > 1 && (self.kept.len() > MOMENTS || self.bytes() > BYTES) {
            self.kept.pop_front();
        }
        id
    }

    pub(super) fn get(&self, id: u64) -> Option<Arc<Kept>> {
        self.kept.iter().find(|kept| kept.id == id).cloned()
    }

    /// The moments of the same program; of a file, all files.
    pub(super) fn course(&self, of: &Kept) -> Vec<Arc<Kept>> {
        self.kept.iter().filter(|kept| kept.source == of.source).cloned().collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Kept> {
        self.kept.iter().map(AsRef::as_ref)
    }

    fn bytes(&self) -> usize {
        self.iter().map(|kept| kept.moment.bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memreport::snapshot::read::Options;

    #[test]
    fn the_oldest_moments_give_way() {
        let report = br#"{"version":1,"hasMozMallocUsableSize":true,"reports":[]}"#;
        let mut shelf = Shelf::default();
        for number in 0..MOMENTS as u64 + 3 {
            let moment = Moment::of_bytes("m".into(), report.to_vec(), Options::default()).unwrap();
            assert_eq!(shelf.add(moment, None), number);
        }
        assert_eq!(shelf.iter().count(), MOMENTS);
        assert!(shelf.get(2).is_none());
        assert!(shelf.get(3).is_some());
    }
}
