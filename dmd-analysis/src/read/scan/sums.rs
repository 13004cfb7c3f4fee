//! Sums of alike blocks of a scan, for questions that need no single block.

use rustc_hash::FxHashMap;

use crate::read::block::list::{BlockList, Numbers};

/// The properties of blocks that become one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Alike {
    kind: u32,
    req: u64,
    slop: u64,
}

/// The most entries that are remembered: with more, all are forgotten, and blocks like theirs begin
/// new entries. So a scan without alike blocks takes no more memory than a list of its blocks.
const MOST: usize = 1 << 17;

/// Adds up blocks.
#[derive(Debug, Default)]
pub(super) struct Sums {
    /// The indices of entries.
    entries: FxHashMap<Alike, usize>,
}

impl Sums {
    /// Adds blocks to the entry of the blocks like them.
    pub(super) fn add(&mut self, list: &mut BlockList, numbers: Numbers, num: u64, kind: u32) {
        let Numbers { req, slop, addr: _ } = numbers;
        let alike = Alike { kind, req, slop };
        if let Some(entry) = self.entries.get(&alike) {
            return list.add(*entry, num);
        }
        if self.entries.len() == MOST {
            self.entries.clear();
        }
        self.entries.insert(alike, list.len());
        list.push(Numbers { req, slop, addr: None }, num, kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alike_blocks_are_one_entry_until_it_is_forgotten() {
        let mut list = BlockList::default();
        let kinds = [1, 2].map(|thread| {
            list.add_kind(crate::read::BlockKind { thread: Some(thread), ..Default::default() })
        });
        let mut sums = Sums::default();
        let mut add = |req: u64, slop: u64, num: u64, kind: usize| {
            let addr = std::num::NonZeroU64::new(1 + req);
            sums.add(&mut list, Numbers { req, slop, addr }, num, kinds[kind]);
        };
        for _ in 0..3 {
            add(40, 0, 1, 0);
            add(40, 8, 1, 0);
            add(40, 0, 2, 1);
        }
        // These take all places but three, and the next one makes room.
        let others = 100..100 + MOST as u64 - 3;
        others.clone().for_each(|req| add(req, 0, 1, 0));
        add(40, 8, 5, 0);
        add(7, 7, 1, 0);
        add(40, 8, 1, 0);
        let all: Vec<_> = list.iter().map(|of| (of.req, of.slop, of.num, of.kind.thread)).collect();
        assert_eq!(all[..3], [(40, 0, 3, Some(1)), (40, 8, 8, Some(1)), (40, 0, 6, Some(2))]);
        assert_eq!(all[3..MOST].len(), others.count());
        assert!(all[3..MOST].iter().all(|of| of.2 == 1));
        assert_eq!(all[MOST..], [(7, 7, 1, Some(1)), (40, 8, 1, Some(1))]);
        assert!(list.iter().all(|block| block.addr.is_none()));
    }
}
