//! Claims blocks of the tracker's table, and records the claims.

use super::Ops;
use crate::tracker::Tracker;
use crate::tracker::claim::{Claim, Found};
use crate::tracker::recorder::Claimant;

impl Ops<'_> {
    /// Claims a block. Returns the bytes that this added.
    #[inline]
    pub(super) fn claim(&self, tracker: &dyn Tracker, claim: Claim) -> usize {
        self.record(claim, tracker.look_up(claim))
    }

    /// Claims a block that was allocated with this size, if the quick look-up can decide. Returns
    /// its usable bytes.
    #[inline]
    pub(super) fn exact_block(
        &self,
        tracker: &dyn Tracker,
        start: usize,
        size: usize,
    ) -> Option<usize> {
        match self.collection.recorder {
            None => tracker.exact_block(start, size),
            Some(recorder) => recorder.claimed_exact(start, size, self.claimant()),
        }
    }

    #[inline]
    pub(super) fn claimant(&self) -> Claimant {
        Claimant { reporter: self.collection.reporter.get(), field: self.field.get() }
    }

    /// Records a claim and counts its bytes. Returns them.
    #[inline]
    pub(super) fn record(&self, claim: Claim, found: Found) -> usize {
        if let Some(recorder) = self.collection.recorder {
            match self.pending {
                Some(pending) => self.record_later(pending, claim, found),
                None => recorder.claimed(claim, found, self.claimant()),
            }
        }
        if found.bytes > 0 {
            self.count(found.bytes);
        }
        found.bytes
    }
}
