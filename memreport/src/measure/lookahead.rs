//! Prefetches the memory of blocks whose sizes are queried soon.
//!
//! A prefetch is a hint. It reads nothing and accepts any address.

use crate::measure::known_blocks::KnownBlocks;
use crate::tracker::Tracker;
use crate::tracker::prefetch::fetch;
use crate::tracker::size_classes::SizeClasses;

/// The size of a cache line in bytes. Where lines are longer, some are prefetched twice.
pub(crate) const LINE: usize = 64;

/// Prefetches the memory that will be queried soon, by hints to the processor.
#[derive(Clone, Copy)]
pub struct Lookahead<'t> {
    /// The table in which blocks of unknown layouts are looked up.
    pub(crate) table: Option<&'t dyn Tracker>,
    /// True if the allocator reads sizes from the words before blocks.
    pub(crate) reads_headers: bool,
    /// The blocks that a recorder knows without a look-up.
    pub(crate) known_blocks: Option<&'t KnownBlocks<'t>>,
    /// The size classes, if claims do not wait: blocks of other sizes are looked for at once.
    #[cfg_attr(not(feature = "bytes"), expect(dead_code, reason = "read for slices of `bytes`"))]
    pub(crate) classes_at_once: Option<&'static SizeClasses>,
    /// True if pointees that the queue will prefetch are left out.
    pub(crate) defers_pointees: bool,
}

impl core::fmt::Debug for Lookahead<'_> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("Lookahead").field("by_table", &self.table.is_some()).finish()
    }
}

impl Lookahead<'_> {
    /// Prefetches for a size query of a block whose contents are not visited, such as a text's.
    #[inline]
    pub fn block<T: ?Sized>(self, start: *const T) {
        if self.reads_headers {
            fetch(header(start.cast()));
        }
    }

    /// Prefetches for a size query of a block and for a visit to its first `bytes` bytes.
    #[inline]
    pub fn contents<T: ?Sized>(self, start: *const T, bytes: usize) {
        let start = start.cast::<u8>();
        // The start is mostly in one line with the header.
        fetch(if self.reads_headers { header(start) } else { start });
        fetch(start.wrapping_add(bytes.saturating_sub(1)));
    }

    /// Prefetches for the look-ups of these machine words as addresses in blocks, if a tracker
    /// answers.
    #[cfg(feature = "bytes")]
    #[inline]
    pub(crate) fn words(self, words: impl Iterator<Item = usize>) {
        words.for_each(|word| self.entry(word));
    }

    /// Prefetches for a claim of a block that probably starts here, if it is looked for at once.
    #[cfg(feature = "bytes")]
    #[inline]
    pub(crate) fn supposed_block(self, start: *const u8, size: usize) {
        if self.classes_at_once.is_some_and(|classes| classes.usable(size).is_none()) {
            self.entry(start.addr());
        }
    }

    /// Prefetches for a look-up of this address, if a tracker answers.
    #[inline]
    fn entry(self, address: usize) {
        match (self.known_blocks, self.table) {
            (Some(known), _) => fetch(known.entry_address(address)),
            (None, Some(table)) => fetch(table.entry_address(address)),
            (None, None) => {}
        }
    }

    /// Prefetches the memory at this address, which may be any number.
    #[cfg(feature = "bytes")]
    #[inline]
    pub(crate) fn address(self, address: usize) {
        fetch(core::ptr::without_provenance(address));
    }

    /// Prefetches as [`contents`](Self::contents) does, for a block that is looked up as soon as it
    /// is visited.
    #[inline]
    pub(crate) fn shared_contents(self, start: *const u8, bytes: usize) {
        self.entry(start.addr());
        self.contents(start, bytes);
    }

    /// Prefetches for a value that is a block of its own. See [`contents`](Self::contents).
    #[inline]
    pub(crate) fn value<T: ?Sized>(self, value: &T) {
        self.contents(core::ptr::from_ref(value), size_of_val(value));
    }
}

/// Returns the address before a block, where allocators keep its size. The start of the block is
/// mostly in the same line.
#[inline]
pub(crate) fn header(start: *const u8) -> *const u8 {
    start.wrapping_sub(size_of::<[usize; 2]>())
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use std::rc::Rc;
    use std::sync::Arc;

    use super::*;
    use crate::MallocSizeOf;
    use crate::tracker::prefetch::FETCHED;

    /// Prefetches for visits to contents, not for size queries.
    const CONTENTS: Lookahead<'_> = Lookahead {
        table: None,
        reads_headers: false,
        known_blocks: None,
        classes_at_once: None,
        defers_pointees: false,
    };

    /// Returns the addresses that are prefetched by a call.
    fn fetched(call: impl FnOnce()) -> Vec<usize> {
        FETCHED.take();
        call();
        FETCHED.take()
    }

    /// Checks the starts of the blocks that are prefetched with a value, and with its pointees.
    #[track_caller]
    fn check<T: MallocSizeOf>(value: &T, blocks: &[usize], pointees: &[usize]) {
        let fetched_blocks = fetched(|| value.prefetch(CONTENTS));
        let fetched_pointees = fetched(|| value.prefetch_pointees(CONTENTS));
        for (fetched, expected) in [(fetched_blocks, blocks), (fetched_pointees, pointees)] {
            assert!(expected.iter().all(|block| fetched.contains(block)), "{fetched:x?}");
            assert_eq!(fetched.is_empty(), expected.is_empty(), "{fetched:x?}");
        }
    }

    #[expect(clippy::box_collection, reason = "its pointee owns a block")]
    fn list(place: usize) -> Box<Vec<String>> {
        Box::new(vec![format!("text {place}")])
    }

    /// Returns the block of a box.
    fn own(list: &Vec<String>) -> usize {
        core::ptr::from_ref(list).addr()
    }

    /// Returns the block of a list's elements.
    fn elements(list: &[String]) -> usize {
        list.as_ptr().addr()
    }

    #[test]
    fn a_value_prefetches_its_block_and_then_its_pointees() {
        let counts = size_of::<[usize; 2]>();
        let boxed = list(0);
        check(&boxed, &[own(&boxed)], &[elements(&boxed)]);
        let shared = Arc::new(*list(1));
        check(&shared, &[own(&shared) - counts], &[elements(&shared)]);
        let shared = Rc::new(*list(2));
        check(&shared, &[own(&shared) - counts], &[elements(&shared)]);
        let array = [list(3), list(4)];
        let owned = array.each_ref().map(|list| own(list));
        check(&array, &owned, &array.each_ref().map(|list| elements(list)));
        // The pointees of a vector are the blocks of its first elements.
        let vector: Vec<_> = (0..20).map(list).collect();
        let first: Vec<_> = vector.iter().take(8).map(|list| own(list)).collect();
        check(&vector, &[vector.as_ptr().addr()], &first);
        // What is not visited is not prefetched.
        check(&vec![1_u64, 2, 3], &[], &[]);
    }

    #[test]
    fn the_words_before_blocks_are_prefetched_if_they_are_read() {
        let reading = Lookahead { reads_headers: true, ..CONTENTS };
        let numbers = vec![1_u64, 2, 3];
        let before = numbers.as_ptr().addr() - size_of::<[usize; 2]>();
        assert_eq!(fetched(|| numbers.prefetch(reading)), [before]);
        let list = list(0);
        let before = own(&list) - size_of::<[usize; 2]>();
        assert!(fetched(|| list.prefetch(reading)).contains(&before));
    }

    #[test]
    fn pointees_are_left_to_the_queue_on_request() {
        let boxed = list(0);
        let deferring = Lookahead { defers_pointees: true, ..CONTENTS };
        assert!(fetched(|| boxed.prefetch_pointees(deferring)).is_empty());
    }
}
