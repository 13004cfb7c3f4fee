//! Defines the trait of measurable types, and the functions that measure a value.

use super::lookahead::Lookahead;
use super::measured::Measured;
use super::ops::{Collection, Ops, measure_with};
use crate::allocator::size_source::SizeSource;
use crate::tracker::Tracker;
use crate::tracker::recorder::Recorder;

/// A type that can report the heap blocks that its values own.
///
/// Derive it. An implementation by hand visits the values that own heap, and leaves the rest to
/// [`Ops`]:
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
/// # Accuracy for the types of std
///
/// *Exact* means the usable bytes of exactly the blocks that the value owns. For each type, a test
/// drops values and compares with the bytes that this frees.
///
/// | type | allocator declared | DMD awake |
/// |---|---|---|
/// | `Vec`, `String`, `Box`, `Rc`, `Arc`, `BinaryHeap`, also pinned | exact | exact |
/// | `CString`, `OsString`, `PathBuf`, `Cursor`, `BufWriter` | exact | exact |
/// | `array::IntoIter`, `vec::Drain`, `process::Output` | exact | exact |
/// | `VecDeque`, `LinkedList`, `BufReader`, `LineWriter` | formula | exact |
/// | `HashMap`, `HashSet` | formula; after removals, a lower bound | exact |
/// | `BTreeMap`, `BTreeSet` | formula; emptied by removals, a lower bound | exact |
/// | `vec::IntoIter` | formula: the remaining elements | exact |
/// | `IntoIter` of other collections | nothing | lower bound |
/// | `Weak`, when it alone keeps the block | lower bound: two counts | exact |
/// | `LazyLock`, `LazyCell` | the initialized value | the initialized value |
/// | `Mutex`, `RwLock`, `RefCell` | the value inside, or *busy* | the value inside, or *busy* |
/// | `io::Error`, `Box<dyn Error>` | lower bound | lower bound |
/// | `FromUtf8Error`, `NulError`, `IntoStringError` | nothing | exact |
/// | `Backtrace`, ends of channels, `Waker` | nothing | lower bound |
/// | `Thread`, `JoinHandle`, `ScopedJoinHandle` | nothing | lower bound |
/// | `process::Command` | the lengths of its texts | lower bound |
/// | `Stdin`, `Stdout`, files, sockets, children | exact: nothing | exact: nothing |
/// | `fmt::Arguments`, borrowing iterators | exact: nothing | exact: nothing |
/// | options, tuples, arrays, ranges, cells | their parts | their parts |
///
/// The lower bounds do not count:
///
/// * `BTreeMap`: the leaf that an emptied map keeps
/// * `IntoIter`: the remaining elements, and some nodes of trees and lists
/// * `LazyLock`: the captures of an initializer that has not run
/// * errors: the blocks of the cause, or of the boxed error
/// * `Backtrace`: the names, once it is resolved
/// * channels: queued messages, and more than two blocks of an unbounded channel
/// * `Waker`: more than the block that it points to
/// * threads: the thread's result
/// * `process::Command`: `arg0`, and some nodes of a large changed environment
///
/// A *formula* adds up the bytes that the type requests. It falls short only by the allocator's
/// rounding: with glibc, up to 23 bytes a block. Where no allocator is declared, every block counts
/// with its requested size. Where std's locks use pthreads (not on Linux or Windows), the block of
/// a lock is not counted.
///
/// `LazyLock` and `LazyCell` are *busy* before Rust 1.94, which first exposes whether they are
/// initialized.
///
/// These types do not implement the trait:
///
/// * a `Cell` of a type that is not `Copy`, which cannot lend its value: measure such a field
///   `with` [`in_cell`](crate::in_cell)
/// * `Box<dyn Any>`, boxed functions and futures, whose contents are unknown
/// * `ReentrantLock`, which is not stable
/// * guards of locks, `PeekMut` and entries of maps, which borrow their value
/// * pointers, of which only their owner can tell whether they own a block
/// * `fs::ReadDir`, `env::Args` and other iterators that expose nothing
#[diagnostic::on_unimplemented(
    message = "the heap that `{Self}` owns is not known: `MallocSizeOf` is not implemented",
    label = "`MallocSizeOf` is not implemented for `{Self}`",
    note = "your own type: add `#[derive(MallocSizeOf)]`",
    note = "a type of another crate: enable that crate's feature of `memreport`, or measure the field by `#[malloc_size_of(with = function)]`",
    note = "a field that is not to be measured: `#[malloc_size_of(ignore = \"why\")]`"
)]
pub trait MallocSizeOf {
    /// Adds the heap blocks that this value owns to `ops`, without the value's own storage.
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>);

    /// Prefetches the memory that measuring this value reads first. A container calls it some
    /// elements ahead.
    ///
    /// It is a hint to the processor and has no other effect. The derive writes it. By hand, call
    /// the methods of [`Lookahead`] for each block.
    #[inline]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        let _ = ahead;
    }

    /// Prefetches the memory behind the blocks that [`prefetch`](Self::prefetch) has fetched
    /// earlier. It is a hint as well.
    #[inline]
    fn prefetch_pointees(&self, ahead: Lookahead<'_>) {
        let _ = ahead;
    }

    /// Prefetches for an optional value. Implementations select the address without a branch, which
    /// could not be predicted.
    #[doc(hidden)]
    #[inline]
    fn prefetch_option(value: Option<&Self>, ahead: Lookahead<'_>)
    where
        Self: Sized,
    {
        if let Some(value) = value {
            value.prefetch(ahead);
        }
    }

    /// Returns whether no value of this type ever owns heap, as with numbers. Containers then skip
    /// their elements.
    #[inline]
    #[must_use]
    fn owns_nothing() -> bool
    where
        Self: Sized,
    {
        false
    }
}

/// A container that can report its own blocks, apart from the blocks that its elements own.
#[diagnostic::on_unimplemented(
    message = "the blocks of `{Self}` itself are not known: `MallocShallowSizeOf` is not implemented",
    label = "`MallocShallowSizeOf` is not implemented for `{Self}`",
    note = "without `shallow`, the field is measured with all that it owns"
)]
pub trait MallocShallowSizeOf {
    /// Adds the container's own blocks to `ops`, without the blocks that its elements own.
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>);
}

/// Measures the heap that `value` owns. Records no claims: DMD does not take it for a report.
///
/// ```
/// let measured = memreport::measure(&vec![0_u64; 100]);
/// assert_eq!(measured.blocks, 1);
/// assert!(measured.bytes >= 800);
/// ```
pub fn measure<T: ?Sized + MallocSizeOf>(value: &T) -> Measured {
    measure_with(&Collection::unrecorded(), value, T::add_size_of_excluding_this)
}

/// Measures `value` with the sizes of `tracker`, and records every claim with `recorder`. Used by
/// the proofs of `dmd`.
pub fn measure_recorded<T: ?Sized + MallocSizeOf>(
    value: &T,
    tracker: &'static dyn Tracker,
    recorder: &dyn Recorder,
) -> Measured {
    let collection = Collection::new(SizeSource::Table(tracker), Some(recorder));
    measure_with(&collection, value, T::add_size_of_excluding_this)
}
