//! Ages blocks of an earlier epoch.

use super::{Blocks, Granule};
use crate::mem::sync::Ordering::Relaxed;
use crate::table::epoch::Epoch;
use crate::table::packed_block::PackedBlock;

impl Blocks {
    /// Ages every block of an epoch, so that the epoch's number can be used again. Meanwhile calls
    /// `visit` for each live block, in ascending order of addresses: with its start and its usable
    /// bytes. Then calls it with `None` for each sampled block.
    pub(crate) fn age(
        &self,
        granule: Granule,
        epoch: Epoch,
        mut visit: impl FnMut(Option<(usize, usize)>),
    ) {
        let aged = |seen| {
            let packed = PackedBlock::from_word(seen).filter(|packed| packed.epoch() == epoch)?;
            Some(packed.aged().word())
        };
        self.for_each_word(granule, |index, word| {
            let seen = word.load(Relaxed);
            if let Some(packed) = PackedBlock::from_word(seen) {
                let start = granule.start(index, packed.is_second_half());
                let in_record = || Some(self.read_word(word, |_| start)?.block.usable);
                if let Some(usable) = packed.inline_usable().or_else(in_record) {
                    visit(Some((start, usable)));
                }
            }
            if let Some(aged) = aged(seen) {
                // It fails if the owner removes the block meanwhile. No new block at this address
                // can have the same word: none is allocated in this epoch.
                let _ = word.compare_exchange(seen, aged, Relaxed, Relaxed);
            }
        });
        self.for_each_sampled_word(|entry, seen| {
            if PackedBlock::from_word(seen).is_some() {
                visit(None);
            }
            if let Some(aged) = aged(seen) {
                // As above.
                entry.replace_word(seen, aged);
            }
        });
    }
}
