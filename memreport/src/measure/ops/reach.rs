//! Values of foreign types: the tracker finds their blocks by following pointers.

use super::Ops;
use crate::allocator::size_source::SizeSource;
use crate::tracker::words::words_of;

impl<'a> Ops<'a> {
    /// Leaves it to the tracker to find the blocks of a value whose type cannot be measured.
    ///
    /// At the end of the collection, DMD follows every word of the value and of the blocks that it
    /// finds, if the word is an address in a block. Each block counts once, and only if no reporter
    /// measures it. The snapshot reports them apart, below `inferred`: the value need not own all
    /// of them, and blocks are missed whose addresses it has in another form.
    ///
    /// Adds no bytes to this measurement. [`Measured::inferred`](crate::Measured::inferred) counts
    /// the value. Without DMD its blocks stay unreported, and the snapshot has a note.
    pub fn reachable<T: ?Sized>(&self, value: &'a T) {
        if let (SizeSource::Table(_), Some(recorder)) =
            (self.collection.sizes, self.collection.recorder)
        {
            recorder.reaches(words_of(value), self.claimant());
        }
        self.sums.count_inferred();
    }
}
