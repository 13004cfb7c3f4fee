//! Prefetches the memory of blocks whose sizes are queried soon.
//!
//! A prefetch is a hint. It reads nothing and accepts any address.
#![expect(unsafe_code, reason = "fetches memory by an instruction of the processor")]

use crate::tracker::Tracker;

/// The size of a cache line in bytes. Where lines are longer, some are prefetched twice.
pub(crate) const LINE: usize = 64;

/// Prefetches the memory that will be queried soon, by hints to the processor.
#[derive(Clone, Copy)]
pub struct Lookahead<'t> {
    /// The table that answers size queries. Without one, the allocator reads the word before the
    /// block.
    pub(crate) table: Option<&'t dyn Tracker>,
    /// True if the tracker looks up many blocks at once, and prefetches their entries itself.
    pub(crate) defers_look_ups: bool,
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
        let start = start.cast::<u8>();
        match self.table {
            None => fetch(header(start)),
            Some(_) if self.defers_look_ups => {}
            Some(table) => fetch(table.entry_address(start.addr())),
        }
    }

    /// Prefetches for a size query of a block and for a visit to its first `bytes` bytes.
    #[inline]
    pub fn contents<T: ?Sized>(self, start: *const T, bytes: usize) {
        let start = start.cast::<u8>();
        match self.table {
            // The start is mostly in one line with the header.
            None => fetch(header(start)),
            Some(table) => {
                if !self.defers_look_ups {
                    fetch(table.entry_address(start.addr()));
                }
                fetch(start);
            }
        }
        fetch(start.wrapping_add(bytes.saturating_sub(1)));
    }

    /// Prefetches the table's entry of a block that only a tracker finds.
    #[cfg(feature = "bytes")]
    #[inline]
    pub(crate) fn entry(self, start: *const u8) {
        if self.table.is_some() {
            self.block(start);
        }
    }

    /// Prefetches for the look-ups of these machine words as addresses in blocks, if a tracker
    /// answers.
    #[cfg(feature = "bytes")]
    #[inline]
    pub(crate) fn words(self, words: impl Iterator<Item = usize>) {
        if let Some(table) = self.table {
            words.for_each(|word| fetch(table.entry_address(word)));
        }
    }

    /// Prefetches as [`contents`](Self::contents) does, for a block that is looked up as soon as it
    /// is visited.
    #[inline]
    pub(crate) fn shared_contents(self, start: *const u8, bytes: usize) {
        Lookahead { defers_look_ups: false, ..self }.contents(start, bytes);
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
fn header(start: *const u8) -> *const u8 {
    start.wrapping_sub(size_of::<[usize; 2]>())
}

/// Prefetches the cache line at this address, which may be any address.
#[inline]
pub fn fetch(address: *const u8) {
    #[cfg(all(not(miri), target_arch = "x86_64"))]
    // SAFETY: a prefetch reads nothing, and does nothing for an unmapped address.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(all(not(miri), target_arch = "aarch64"))]
    // SAFETY: a prefetch, as on the other processor.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{0}]", in(reg) address, options(readonly, nostack, preserves_flags));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use std::rc::Rc;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::MallocSizeOf;
    use crate::tracker::claim::{Claim, Found};
    use crate::tracker::findings::Recording;

    /// A tracker whose table only answers where an entry is, and logs the blocks.
    #[derive(Default)]
    struct Entries(Mutex<Vec<usize>>);

    impl Tracker for Entries {
        fn is_awake(&self) -> bool {
            true
        }

        fn tracks_every_block(&self) -> bool {
            true
        }

        fn state(&self) -> String {
            "a test".to_owned()
        }

        fn look_up(&self, claim: Claim) -> Found {
            unreachable!("{claim:?}")
        }

        fn exact_block(&self, _: usize, _: usize) -> Option<usize> {
            None
        }

        fn entry_address(&self, address: usize) -> *const u8 {
            self.0.lock().expect("nothing panics").push(address);
            core::ptr::null()
        }

        fn begin(&self) -> Box<dyn Recording> {
            unreachable!("nothing is collected")
        }

        fn own_memory(&self, _: &mut dyn FnMut(&'static str, usize, &'static str)) {}
    }

    /// Returns the blocks whose entries are prefetched with a value, and those with its pointees.
    fn fetched<T: MallocSizeOf>(value: &T) -> [Vec<usize>; 2] {
        let [blocks, pointees] = [Entries::default(), Entries::default()];
        let by = |table| Lookahead {
            table: Some(table),
            defers_look_ups: false,
            defers_pointees: false,
        };
        value.prefetch(by(&blocks));
        value.prefetch_pointees(by(&pointees));
        [blocks, pointees].map(|entries| entries.0.into_inner().expect("nothing panics"))
    }

    #[expect(clippy::box_collection, reason = "its pointee owns a block")]
    fn text(place: usize) -> Box<String> {
        Box::new(format!("text {place}"))
    }

    /// Returns the block of a box.
    fn own(text: &String) -> usize {
        core::ptr::from_ref(text).addr()
    }

    /// Returns the block of a text.
    fn buffer(text: &str) -> usize {
        text.as_ptr().addr()
    }

    #[test]
    fn a_value_prefetches_the_entry_of_its_block_and_then_of_its_pointees() {
        let counts = size_of::<[usize; 2]>();
        let boxed = text(0);
        assert_eq!(fetched(&boxed), [[own(&boxed)], [buffer(&boxed)]]);
        let shared = Arc::new(*text(1));
        assert_eq!(fetched(&shared), [[own(&shared) - counts], [buffer(&shared)]]);
        let shared = Rc::new(*text(2));
        assert_eq!(fetched(&shared), [[own(&shared) - counts], [buffer(&shared)]]);
        let array = [text(3), text(4)];
        let expected = [[own(&array[0]), own(&array[1])], [buffer(&array[0]), buffer(&array[1])]];
        assert_eq!(fetched(&array), expected);
        // The pointees of a vector are the blocks of its first elements.
        let vector: Vec<_> = (0..20).map(text).collect();
        let first: Vec<_> = vector.iter().take(8).map(|text| own(text)).collect();
        assert_eq!(fetched(&vector), [vec![vector.as_ptr().addr()], first]);
        let numbers = vec![1_u64, 2, 3];
        assert_eq!(fetched(&numbers), [vec![numbers.as_ptr().addr()], vec![]]);
    }

    #[test]
    fn pointees_are_left_to_the_queue_on_request() {
        let boxed = text(0);
        let entries = Entries::default();
        boxed.prefetch_pointees(Lookahead {
            table: Some(&entries),
            defers_look_ups: false,
            defers_pointees: true,
        });
        assert!(entries.0.lock().expect("nothing panics").is_empty());
    }
}
