//! The crates that measure, each as a function from a value to its heap bytes.

use std::ffi::c_void;

use datasize::DataSize;
use deepsize::DeepSizeOf;
use get_size2::{GetSize, StandardTracker};
use mem_dbg::{MemSize, SizeFlags};
use stylo_malloc_size_of::MallocSizeOfOps;

use crate::data::{Map, Node, Ordered, Owners};
use crate::floor::ByHand;

/// A crate's name, and its function that measures a `T`.
pub type Peer<T> = (&'static str, fn(&T) -> usize);

/// A type that several crates can measure.
pub trait Measured: Sized {
    /// Returns the crates that support the type, ours first.
    fn peers() -> Vec<Peer<Self>>;
}

/// Measures with `memreport`.
pub fn ours<T: memreport::MallocSizeOf>(value: &T) -> usize {
    memreport::measure(value).bytes
}

fn stylo<T: stylo_malloc_size_of::MallocSizeOf>(value: &T) -> usize {
    unsafe extern "C" fn usable_size(block: *const c_void) -> usize {
        // SAFETY: the crate passes starts of live blocks of the global allocator, which is the
        // system's.
        unsafe { libc::malloc_usable_size(block.cast_mut()) }
    }
    value.size_of(&mut MallocSizeOfOps::new(usable_size, None, None))
}

/// Measures without a crate, with one call of the allocator per block.
fn by_hand<T: ByHand>(value: &T) -> usize {
    value.by_hand()
}

fn allocative<T: allocative::Allocative>(value: &T) -> usize {
    allocative::size_of_unique_allocated_data(value)
}

fn mem_dbg<T: MemSize>(value: &T) -> usize {
    value.mem_size(SizeFlags::CAPACITY | SizeFlags::FOLLOW_RCS) - size_of::<T>()
}

fn get_size2<T: GetSize>(value: &T) -> usize {
    value.get_heap_size_with_tracker(StandardTracker::new()).0
}

fn deepsize<T: DeepSizeOf>(value: &T) -> usize {
    value.deep_size_of() - size_of::<T>()
}

fn datasize<T: DataSize>(value: &T) -> usize {
    datasize::data_size(value)
}

macro_rules! peers_of {
    ($($type:ty: $($peer:ident)*;)*) => {$(
        impl Measured for $type {
            fn peers() -> Vec<Peer<Self>> {
                vec![$((stringify!($peer), $peer::<$type>)),*]
            }
        }
    )*};
}

peers_of! {
    Map: ours stylo by_hand allocative mem_dbg get_size2 deepsize datasize;
    Node: ours stylo by_hand allocative mem_dbg get_size2 deepsize datasize;
    Ordered: ours stylo by_hand allocative mem_dbg get_size2 deepsize datasize;
    // stylo has no impl for std's `Arc`.
    Owners: ours by_hand allocative mem_dbg get_size2 deepsize datasize;
}

// Written by hand: the derive macro is made for Gecko and would generate this code.
impl stylo_malloc_size_of::MallocSizeOf for Node {
    fn size_of(&self, ops: &mut MallocSizeOfOps) -> usize {
        self.name.size_of(ops) + self.left.size_of(ops) + self.right.size_of(ops)
    }
}

// Written by hand: the derive macro does not terminate on a recursive type.
impl MemSize for Node {
    fn mem_size_rec(&self, flags: SizeFlags, seen: &mut mem_dbg::HashMap<usize, usize>) -> usize {
        size_of::<Self>() - 2 * size_of_val(&self.left) - size_of::<String>()
            + self.name.mem_size_rec(flags, seen)
            + self.left.mem_size_rec(flags, seen)
            + self.right.mem_size_rec(flags, seen)
    }
}

impl mem_dbg::FlatType for Node {
    type Flat = mem_dbg::False;
}

// Written by hand: the derive macro does not terminate on a recursive type.
impl DataSize for Node {
    const IS_DYNAMIC: bool = true;
    const STATIC_HEAP_SIZE: usize = 0;

    fn estimate_heap_size(&self) -> usize {
        self.name.estimate_heap_size()
            + self.left.estimate_heap_size()
            + self.right.estimate_heap_size()
    }
}
