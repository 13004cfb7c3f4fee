//! What a value owns on the heap: the trait that types implement, and the one call that measures a value.

use core::alloc::Layout;

use super::measured::Measured;
use super::ops::{Collection, Lookahead, Ops, measure_with};
use crate::allocator::size_source::SizeSource;
use crate::tracker::Tracker;
use crate::tracker::recorder::Recorder;

/// Can say which heap blocks it owns.
///
/// Derive it. Written by hand, an implementation visits what the value owns and leaves the rest to [`Ops`]:
///
/// ```
/// use memreport::{MallocSizeOf, Ops};
///
/// struct Page { text: String, links: Vec<String>, next_free: usize }
///
/// impl MallocSizeOf for Page {
///     fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
///         ops.add(&self.text);
///         ops.add(&self.links);
///     }
/// }
/// # let page = Page { text: "a".repeat(40), links: Vec::new(), next_free: 0 };
/// # assert!(memreport::measure(&page).bytes >= 40);
/// ```
///
/// # How exact the types of std are
///
/// *Exact* is: the usable bytes of exactly the blocks that the value owns. For each type, a test drops values and compares with
/// what is freed.
///
/// | type | where the allocator is asked | where DMD is awake |
/// |---|---|---|
/// | `Vec`, `String`, `Box`, `Rc`, `Arc`, `BinaryHeap`, `CString`, `OsString`, `PathBuf`, pinned too | exact | exact |
/// | `Cursor`, `BufWriter` | exact | exact |
/// | `array::IntoIter`, `vec::Drain`, `process::Output` | exact | exact |
/// | `VecDeque`, `LinkedList`, `BufReader`, `LineWriter` | formula | exact |
/// | `vec::IntoIter` | formula: what is left to come | exact |
/// | `IntoIter` of other collections | nothing | lower bound: not what is left to come, and of trees and lists not all nodes |
/// | `LazyLock`, `LazyCell` | as what was made | as what was made; not what the function of one that was not has captured |
/// | `HashMap`, `HashSet` | formula; after removals, a lower bound | exact |
/// | `BTreeMap`, `BTreeSet` | formula; emptied by removals, a lower bound: the leaf that is kept is not seen | exact |
/// | `Weak`, when it alone keeps the block | lower bound: two counts | exact |
/// | `Mutex`, `RwLock`, `RefCell` | as what is inside, or *busy* | as what is inside, or *busy* |
/// | `io::Error`, `Box<dyn Error>` | lower bound | lower bound: what its cause, or the error in the box, owns is not seen |
/// | `FromUtf8Error`, `NulError`, `IntoStringError` | nothing | exact |
/// | `Backtrace` | nothing | lower bound: not the names, once it was shown |
/// | ends of channels | nothing | lower bound: not what waits in them, nor more than two blocks of an unbounded one |
/// | `Thread`, `JoinHandle`, `ScopedJoinHandle` | nothing | lower bound: not what the thread will return |
/// | `Waker` | nothing | lower bound: the block that it leads to |
/// | `process::Command` | the lengths of its texts | lower bound: not the name that is told, nor all of a big changed environment |
/// | `Stdin`, `Stdout`, files, sockets, children, `fmt::Arguments`, iterators that lend | exact: nothing | exact: nothing |
/// | options, tuples, arrays, ranges, cells | as their parts | as their parts |
///
/// A *formula* adds up what the type asks the allocator for, and is short only by what that rounds up: with glibc, up to 23 bytes
/// a block. Where no allocator is declared, all blocks count as what was asked for. Where std makes locks of pthreads' (not
/// on Linux or Windows), the block of a lock is not seen.
///
/// `LazyLock` and `LazyCell` are *busy* before Rust 1.94, which is the first to tell whether they were made. A `Cell` of what cannot be
/// copied lends it to nobody, and does not implement the trait: a field of that is measured `with` [`in_cell`](crate::in_cell). Nor do
/// `Box<dyn Any>`, boxed functions and futures, of which nobody knows what they hold; `ReentrantLock`, which is not
/// stable; locks' guards, `PeekMut` and entries of maps, which lend what somebody else has; pointers, of which only their owner knows
/// whether they own anything; or `fs::ReadDir`, `env::Args` and other iterators, of which nothing is told.
#[diagnostic::on_unimplemented(
    message = "nobody knows what heap `{Self}` owns",
    label = "`MallocSizeOf` is not implemented for `{Self}`",
    note = "your own type: add `#[derive(MallocSizeOf)]`",
    note = "a type of another crate: enable that crate's feature of `memreport`, or measure the field by `#[malloc_size_of(with = function)]`",
    note = "a field that is not to be measured: `#[malloc_size_of(ignore = \"why\")]`"
)]
pub trait MallocSizeOf {
    /// Adds the heap that this value owns, but not the value's own storage, to `ops`.
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>);

    /// Fetches what measuring this value will ask about first, for a container that comes to it soon: a hint to the processor, which
    /// does nothing by itself. The derive writes it; by hand, [`Lookahead`] is told of each block.
    #[inline]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        let _ = ahead;
    }

    /// Fetches what is asked about next, behind the blocks that [`prefetch`](Self::prefetch) has fetched a while ago. A hint as well.
    #[inline]
    fn prefetch_behind(&self, ahead: Lookahead<'_>) {
        let _ = ahead;
    }

    /// As [`prefetch`](Self::prefetch), for what may not be there. Which it is nobody can foresee, so pointers decide it without a branch.
    #[doc(hidden)]
    #[inline]
    fn prefetch_some(value: Option<&Self>, ahead: Lookahead<'_>)
    where
        Self: Sized,
    {
        if let Some(value) = value {
            value.prefetch(ahead);
        }
    }

    /// Whether no value of this type ever owns heap, as of numbers: containers then need not look at each.
    #[inline]
    #[must_use]
    fn owns_nothing() -> bool
    where
        Self: Sized,
    {
        false
    }

    /// The heap that this value owns, in bytes, as a number: what this value alone added to `ops`.
    fn size_of_excluding_this(&self, ops: &Ops<'_>) -> usize {
        let before = ops.bytes();
        ops.now(self, |value, ops| value.add_size_of_excluding_this(ops));
        ops.bytes() - before
    }

    /// As [`add_size_of_excluding_this`](Self::add_size_of_excluding_this), and the block that this value lives in as well.
    ///
    /// Safe code measures the `Box`, `Rc` or `Arc` that holds the value, which comes to the same.
    ///
    /// # Safety
    ///
    /// `self` is the start of a live block of the global allocator, allocated with `Layout::for_value(self)`.
    #[expect(unsafe_code, reason = "only the caller knows that the value is a block of its own")]
    unsafe fn add_size_of_including_this<'a>(&'a self, ops: &Ops<'a>) {
        // SAFETY: the caller's promise is the one that `block` asks for.
        unsafe { ops.block(core::ptr::from_ref(self), Layout::for_value(self)) };
        self.add_size_of_excluding_this(ops);
    }

    /// As [`size_of_excluding_this`](Self::size_of_excluding_this), with the block that this value lives in.
    ///
    /// # Safety
    ///
    /// As for [`add_size_of_including_this`](Self::add_size_of_including_this).
    #[expect(unsafe_code, reason = "only the caller knows that the value is a block of its own")]
    unsafe fn size_of_including_this(&self, ops: &Ops<'_>) -> usize {
        let before = ops.bytes();
        // SAFETY: handed on.
        ops.now(self, |value, ops| unsafe { value.add_size_of_including_this(ops) });
        ops.bytes() - before
    }
}

/// A container that can say which blocks are its own, apart from what its elements own.
#[diagnostic::on_unimplemented(
    message = "nobody knows which blocks are `{Self}`'s own",
    label = "`MallocShallowSizeOf` is not implemented for `{Self}`",
    note = "without `shallow`, the field is measured with all that it owns"
)]
pub trait MallocShallowSizeOf {
    /// Adds the container's own blocks to `ops`, and nothing that its elements own.
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>);
}

/// Measures the heap that `value` owns. Marks nothing: DMD does not take it for a report.
///
/// ```
/// let measured = memreport::measure(&vec![0_u64; 100]);
/// assert_eq!(measured.blocks, 1);
/// assert!(measured.bytes >= 800);
/// ```
pub fn measure<T: ?Sized + MallocSizeOf>(value: &T) -> Measured {
    measure_with(&Collection::unmarked(), value, T::add_size_of_excluding_this)
}

/// As [`measure`], with every claim told to `recorder`; sizes come from the tracker. For the proofs of `dmd`.
pub fn measure_recorded<T: ?Sized + MallocSizeOf>(
    value: &T,
    tracker: &'static dyn Tracker,
    recorder: &dyn Recorder,
) -> Measured {
    let collection = Collection::new(SizeSource::Table(tracker), Some(recorder));
    measure_with(&collection, value, T::add_size_of_excluding_this)
}
