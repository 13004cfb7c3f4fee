//! Tests sizes without a tracker: exact from the allocator, elsewhere a formula with a known error.

#![expect(unsafe_code, reason = "an allocator is unsafe by nature")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, LinkedList, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use memreport::{MallocSizeOf, UsableSize, measure};

memreport::global_allocator!(Counting);

/// The system's allocator, with a count for each thread.
struct Counting;

thread_local! {
    /// The usable bytes and the blocks that this thread has allocated and not freed.
    static ALLOCATED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

fn count(change: impl FnOnce((usize, usize)) -> (usize, usize)) {
    let _ = ALLOCATED.try_with(|allocated| allocated.set(change(allocated.get())));
}

// SAFETY: every call is passed through unchanged. Counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is passed through.
        let block = unsafe { System.alloc(layout) };
        if !block.is_null() {
            // SAFETY: live.
            let bytes = unsafe { self.usable_size(block, layout) };
            count(|(sum, blocks)| (sum.wrapping_add(bytes), blocks.wrapping_add(1)));
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: live until the next line.
        let bytes = unsafe { self.usable_size(block, layout) };
        count(|(sum, blocks)| (sum.wrapping_sub(bytes), blocks.wrapping_sub(1)));
        // SAFETY: the caller's contract is passed through.
        unsafe { System.dealloc(block, layout) };
    }
}

// SAFETY: the system's allocator answers about its own blocks.
unsafe impl UsableSize for Counting {
    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize {
        // SAFETY: the caller's contract is passed through.
        unsafe { System.usable_size(block, layout) }
    }
}

/// Creates a value. Returns it with its bytes and blocks, by the allocator.
fn made<T>(make: impl FnOnce() -> T) -> (T, usize, usize) {
    let before = ALLOCATED.get();
    let value = make();
    let after = ALLOCATED.get();
    (value, after.0.wrapping_sub(before.0), after.1.wrapping_sub(before.1))
}

#[track_caller]
fn exact<T: MallocSizeOf>(make: impl FnOnce() -> T) {
    let (value, bytes, blocks) = made(make);
    let measured = measure(&value);
    assert_eq!((measured.bytes, measured.blocks, measured.computed), (bytes, blocks, 0));
}

/// Checks that everything is computed, and falls short only by the allocator's rounding.
#[track_caller]
fn formula<T: MallocSizeOf>(make: impl FnOnce() -> T) {
    /// The rounding of malloc's smallest block, for one byte.
    const MOST_ROUNDED: usize = 23;

    let (value, bytes, blocks) = made(make);
    let measured = measure(&value);
    assert_eq!((measured.bytes, measured.blocks), (measured.computed, 0));
    let missing = bytes.checked_sub(measured.bytes).expect("never too much");
    assert!(missing <= MOST_ROUNDED * blocks, "{missing} bytes of {bytes} in {blocks} blocks");
}

/// The allocator reports the block's size, with its rounding.
#[test]
#[cfg_attr(miri, ignore = "nobody is asked under Miri")]
fn blocks_with_a_known_start_are_exact() {
    exact(|| vec![1_u8; 33]);
    exact(|| Vec::<u32>::with_capacity(1001));
    exact(|| String::from("a string of a few words"));
    exact(|| Box::new([1_u16; 33]));
    exact(|| Rc::new([1_u16; 33]));
    exact(|| Arc::<[u8]>::from([1_u8; 33]));
    exact(|| Arc::<str>::from("text"));
    exact(|| (Arc::<str>::default(), Arc::<[u64]>::default(), Arc::<std::ffi::CStr>::default()));
    exact(std::rc::Weak::<u64>::new);
    exact(HashMap::<u64, u64>::new);
    exact(BTreeMap::<u64, u64>::new);
}

/// The formula is the size of the table, the buffer or the nodes. Only the rounding is missing.
#[test]
#[cfg_attr(miri, ignore = "nobody is asked under Miri")]
fn formulas_miss_only_what_is_rounded_up() {
    for number in [1, 3, 4, 7, 8, 28, 29, 500, 3000_u64] {
        let capacity = usize::try_from(number).unwrap();
        formula(|| (0..number).map(|key| (key, key)).collect::<HashMap<_, _>>());
        formula(|| HashMap::<u8, u32>::with_capacity(capacity));
        formula(|| (0..number).collect::<HashSet<_>>());
        formula(|| (0..number).collect::<VecDeque<_>>());
        formula(|| VecDeque::<u64>::with_capacity(capacity));
        formula(|| (0..number).map(|key| (key, key)).collect::<BTreeMap<_, _>>());
        formula(|| {
            let keys = (0..number).map(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut set = BTreeSet::new();
            keys.for_each(|key| assert!(set.insert(key)));
            set
        });
        formula(|| (0..number).collect::<LinkedList<_>>());
    }
}

/// Blocks that cannot be found without a tracker.
#[test]
#[cfg_attr(miri, ignore = "nobody is asked under Miri")]
fn lower_bounds() {
    let (emptied, truth, _) = made(|| {
        let mut map = BTreeMap::from([(1_u64, 1_u64)]);
        map.remove(&1);
        map
    });
    assert!(measure(&emptied).bytes == 0 && truth >= 192, "the leaf that is kept");

    let (weak, truth, _) = made(|| Rc::downgrade(&Rc::new([1_u64; 10])));
    assert!((1..truth).contains(&measure(&weak).computed), "the counts, but not the value's place");
}
