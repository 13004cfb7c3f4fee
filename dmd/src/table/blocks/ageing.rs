//! Ages blocks of an earlier epoch.

use super::{Blocks, Granule};
use crate::mem::sync::Ordering::Relaxed;
use crate::table::epoch::Epoch;
use crate::table::packed_block::PackedBlock;

impl Blocks {
    /// Ages every block of an epoch, so that the epoch's number can be used again. Meanwhile calls
    /// `visit` for each live block: with its start, and with its usable bytes if they are not in a
    /// record; or with `None`, for a sampled block.
    pub(crate) fn age(
        &self,
        granule: Granule,
        epoch: Epoch,
        mut visit: impl FnMut(Option<(usize, Option<usize>)>),
    ) {
        let aged = |seen| {
            let packed = PackedBlock::from_word(seen).filter(|packed| packed.epoch() == epoch)?;
            Some(packed.aged().word())
        };
        self.for_each_word(granule, |index, word| {
            let seen = word.load(Relaxed);
            if let Some(packed) = PackedBlock::from_word(seen) {
                let start = granule.start(index, packed.is_second_half());
                visit(Some((start, packed.inline_usable())));
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
