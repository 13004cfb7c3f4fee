//! Defines a traversal: several measurements that share one size function and count blocks once.
#![expect(unsafe_code, reason = "takes the caller's size function")]

use core::ffi::c_void;

use super::measured::Measured;
use super::ops::{Collection, Ops, measure_with};
use super::size_of::MallocSizeOf;
use crate::allocator::size_source::SizeSource;

/// A function that returns the usable bytes of a heap block, given the block's first byte.
///
/// Mozilla's `MallocSizeOf` and Servo's `size_of_op` are functions of this form.
pub type MallocSizeOfFn = unsafe fn(*const c_void) -> usize;

/// A walk over one or more values, which counts each shared block once.
///
/// Shared blocks are recognized by address. A block that is freed and allocated anew between two
/// measurements of one traversal may not count, so use a new traversal for each report.
///
/// Sizes come from the declared allocator, as in [`measure`](crate::measure()), or from a function
/// of the caller's. As in Mozilla's reporters, the function can do more than return a size.
///
/// ```
/// use std::ffi::c_void;
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
///
/// use memreport::{MallocSizeOf, SizeOfExcludingThis, Traversal};
///
/// memreport::global_allocator!(); // the system's allocator, so `malloc_usable_size` answers
///
/// static BLOCKS: AtomicUsize = AtomicUsize::new(0);
///
/// /// # Safety
/// ///
/// /// `start` is the start of a live block of the global allocator.
/// unsafe fn count_and_measure(start: *const c_void) -> usize {
///     BLOCKS.fetch_add(1, Relaxed);
///     // SAFETY: a live block of the C library's malloc, by the caller's contract.
///     unsafe { libc::malloc_usable_size(start.cast_mut()) }
/// }
///
/// #[derive(MallocSizeOf)]
/// struct Page { text: String, links: Vec<String> }
///
/// let page = Page { text: "a".repeat(100), links: vec!["b".to_owned()] };
/// // SAFETY: the function accepts every live block of the global allocator.
/// let traversal = unsafe { Traversal::with_malloc_size_of(count_and_measure) };
/// let bytes = traversal.run(|ops| page.size_of_excluding_this(ops));
/// assert_eq!((bytes, BLOCKS.load(Relaxed)), (memreport::measure(&page).bytes, 3));
/// ```
///
/// The claims of a traversal are not recorded: DMD does not take it for a report. A reporter's
/// values are measured by [`Reports::measure`](crate::Reports::measure).
#[derive(Debug)]
pub struct Traversal {
    collection: Collection<'static>,
}

impl Default for Traversal {
    fn default() -> Self {
        Traversal::new()
    }
}

impl Traversal {
    /// Creates a traversal with the sizes of the declared allocator, or of layouts without one.
    #[must_use]
    pub fn new() -> Self {
        Traversal { collection: Collection::unrecorded() }
    }

    /// Creates a traversal that queries `malloc_size_of` for the size of every block.
    ///
    /// Blocks whose start is unknown, such as the nodes of a `BTreeMap`, count by their formula as
    /// [`Measured::computed`] bytes. The function is called once for each other block.
    ///
    /// # Safety
    ///
    /// For every live block of the global allocator, of any layout, it is sound to call
    /// `malloc_size_of` with the block's start, on every thread that uses the traversal. The
    /// function neither frees blocks nor changes their contents.
    #[must_use]
    pub unsafe fn with_malloc_size_of(malloc_size_of: MallocSizeOfFn) -> Self {
        Traversal { collection: Collection::new(SizeSource::Function(malloc_size_of), None) }
    }

    /// Measures a value. Blocks that it shares with values measured earlier are not counted again.
    pub fn measure<T: ?Sized + MallocSizeOf>(&self, value: &T) -> Measured {
        measure_with(&self.collection, value, T::add_size_of_excluding_this)
    }

    /// Calls `work` with the operations of this traversal, for functions that return bytes.
    #[expect(clippy::missing_panics_doc, reason = "`measure_with` calls the function")]
    pub fn run<R>(&self, work: impl FnOnce(&Ops<'_>) -> R) -> R {
        let mut result = None;
        measure_with(&self.collection, &(), |(), ops| result = Some(work(ops)));
        result.expect("measuring calls the function")
    }
}
