//! Adds up block sizes for one measurement, counts shared blocks once, and records claims for DMD.
#![expect(
    unsafe_code,
    reason = "hands block pointers to the allocator's size query; the duty is the caller's, stated at each method"
)]

mod collection;
mod find;
mod by_words;
#[cfg(feature = "std")]
mod locks;
#[cfg(any(feature = "im", feature = "imbl"))]
mod nodes;
mod pending;
mod prefetch;
mod queue;
mod reach;
mod record;
mod share;
mod sums;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::cell::{Cell, RefCell};

#[cfg(feature = "bytes")]
pub(crate) use by_words::{Handle, SharedMemory};
pub(crate) use collection::Collection;
#[cfg(any(feature = "im", feature = "imbl"))]
pub(crate) use nodes::Nodes;
use pending::{EndOfBorrow, Pending};
pub use prefetch::{Fetch, FetchAny, FetchMeasurable};
pub(crate) use queue::OwningPointer;
use queue::Queue;
use sums::Sums;

use super::held::{Guards, hold_during};
use super::measured::Measured;
use super::size_of::{MallocShallowSizeOf, MallocSizeOf};
use crate::allocator::size_source::SizeSource;
use crate::field::Field;
use crate::tracker::Tracker;
use crate::tracker::claim::{Claim, Place, SizeFrom, Wrong};
use crate::tracker::recorder::Recorder;
use crate::tracker::words::words_of;

/// The stack depth in bytes from which on values are deferred: half of the smallest usual stack.
const STACK_BUDGET: usize = 48 * 1024;

/// The operations of a measurement, on values borrowed for `'a`.
///
/// The values are borrowed for the whole measurement and not just for a call. So values that lie
/// too deep for the stack can be deferred: a list of a million boxed nodes does not overflow it.
/// [`measure_borrowed`](Self::measure_borrowed) measures a shorter borrow, such as the inside of a
/// lock.
pub struct Ops<'a> {
    collection: &'a Collection<'a>,
    sums: &'a Sums,
    /// The blocks whose claims are pending, in a collection with a tracker.
    pending: Option<&'a Pending>,
    /// The field that is being measured: claims are attributed to it.
    field: Cell<Option<&'static Field>>,
    /// The address of the stack below which values are deferred.
    deepest: usize,
    queue: Queue<'a>,
    deferred: RefCell<Vec<Deferred<'a>>>,
    pub(super) guards: Guards<'a>,
}

/// Drops the guards of these `Ops`, after what a panic has left undone.
struct HeldGuards<'o, 'a>(&'o Ops<'a>);

impl Drop for HeldGuards<'_, '_> {
    #[inline]
    fn drop(&mut self) {
        drop(self.0.deferred.take());
        self.0.guards.release();
    }
}

/// A deferred measurement, with the field and the part that it belongs to.
struct Deferred<'a> {
    field: Option<&'static Field>,
    part: usize,
    work: Box<dyn FnOnce(&Ops<'a>) + 'a>,
}

impl<'a> Ops<'a> {
    /// Measures a value, now or deferred if the stack is deep.
    ///
    /// The depth of the stack is checked here. A container that calls this once need not check it
    /// for each element, since deeper values are behind further containers.
    #[inline]
    pub fn add<T: ?Sized + MallocSizeOf>(&self, value: &'a T) {
        self.add_with(value, T::add_size_of_excluding_this);
    }

    /// Measures a value by a function. See [`add`](Self::add).
    #[inline]
    pub fn add_with<T: ?Sized>(&self, value: &'a T, measure: impl FnOnce(&'a T, &Ops<'a>) + 'a) {
        if self.is_deep() {
            self.defer(move |ops| measure(value, ops));
        } else {
            measure(value, self);
        }
    }

    /// Measures a value and attributes the blocks that it owns to this field.
    #[inline(always)]
    pub fn field<T: ?Sized + MallocSizeOf>(&self, field: &'static Field, value: &'a T) {
        self.field_with(field, value, T::add_size_of_excluding_this);
    }

    /// Measures a field's value by a function. See [`field`](Self::field).
    #[inline(always)]
    pub fn field_with<T: ?Sized>(
        &self,
        field: &'static Field,
        value: &'a T,
        measure: impl FnOnce(&'a T, &Ops<'a>),
    ) {
        if let Some(recorder) = self.collection.recorder_for(field) {
            visit(recorder, field, value);
        }
        let outer = self.field.replace(Some(field));
        match field.own_part() {
            None => measure(value, self),
            Some((name, description)) => self.part(name, description, || measure(value, self)),
        }
        self.field.set(outer);
    }

    /// Counts the bytes that `measure` adds for a part of the current part.
    #[cold]
    fn part(&self, name: &'static str, description: &'static str, measure: impl FnOnce()) {
        let outer = self.sums.part();
        self.switch_to(self.sums.child_part(outer, name, description));
        measure();
        self.switch_to(outer);
    }

    /// Records that this field is not measured.
    #[inline]
    pub fn skip<T: ?Sized>(&self, field: &'static Field, value: &T) {
        if let Some(recorder) = self.collection.recorder_for_skipped(field) {
            let address = core::ptr::from_ref(value).cast::<u8>().addr();
            recorder.skips(field, address, size_of_val(value), words_of(value));
        }
    }

    /// Adds a block whose start and layout are known. A layout of size 0 is no block.
    ///
    /// In a collection with DMD awake, its size is found later: at the latest when this measurement
    /// ends, or the innermost [`measure_borrowed`](Self::measure_borrowed).
    ///
    /// # Safety
    ///
    /// Unless the size is 0, `start` could be passed to the global allocator's `dealloc` with this
    /// layout, now and for as long as these `Ops` measure. That is so for a block that a value
    /// borrowed for `'a` owns. A block that may be freed before, such as one behind a lock, is
    /// added within `measure_borrowed`.
    #[inline]
    pub unsafe fn block<T: ?Sized>(&self, start: *const T, layout: Layout) {
        if layout.size() == 0 {
            return;
        }
        let start = start.cast::<u8>();
        // The frequent cases first, without a jump by a table.
        if let Some(usable_size) = self.collection.queries_own_blocks {
            // SAFETY: the caller's contract, for the allocator of the declaration.
            return self.count(unsafe { usable_size(start, layout) });
        }
        if let Some(pending) = self.pending {
            let (claim, query) = (self.collection.claim_own_block, SizeFrom::query(layout));
            // SAFETY: the caller's contract.
            return unsafe { claim(self, start, layout.size(), query, pending) };
        }
        match self.collection.sizes {
            SizeSource::Allocator(_) | SizeSource::Table(_) => {}
            SizeSource::Layout => self.count(layout.size()),
            // SAFETY: the block is live, which is all that the function requires.
            SizeSource::Function(size_of) => self.count(unsafe { size_of(start.cast()) }),
        }
    }

    /// Adds a block with several owners, of which this is one. Returns whether to measure its
    /// contents here.
    ///
    /// # Safety
    ///
    /// The contract of [`block`](Self::block).
    pub unsafe fn shared_block<T: ?Sized>(
        &self,
        start: *const T,
        layout: Layout,
        owners: usize,
    ) -> bool {
        let share = self.share_of(start.cast::<u8>().addr(), owners);
        if share.block {
            // SAFETY: the caller's contract is passed through.
            unsafe { self.block(start, layout) };
        }
        share.contents
    }

    /// Adds a block whose layout is unknown, such as one behind a pointer of a foreign library.
    /// Null adds nothing.
    ///
    /// # Safety
    ///
    /// `start` is null or the start of a live block of the global allocator.
    pub unsafe fn malloc_size_of<T: ?Sized>(&self, start: *const T) {
        let start = start.cast::<u8>();
        match self.collection.sizes {
            _ if start.is_null() => {}
            // Without a size, 0 is the lower bound.
            SizeSource::Layout => self.count_computed(0),
            SizeSource::Allocator(usable_size) => {
                // SAFETY: the caller's contract; the layout of `()` means unknown.
                self.count(unsafe { usable_size(start, Layout::new::<()>()) });
            }
            // SAFETY: the block is live, which is all that the function requires.
            SizeSource::Function(size_of) => self.count(unsafe { size_of(start.cast()) }),
            SizeSource::Table(tracker) => {
                // SAFETY: the caller's contract; the layout of `()` means unknown.
                unsafe { self.claim_start(tracker, start) };
            }
        }
    }

    /// Adds a block whose start is known, with a layout of at least `at_least` bytes.
    ///
    /// # Safety
    ///
    /// Unless `at_least` is 0, `start` is the start of a live block of the global allocator.
    pub unsafe fn block_of_at_least<T: ?Sized>(&self, start: *const T, at_least: usize) {
        let start = start.cast::<u8>();
        match self.collection.sizes {
            _ if at_least == 0 => {}
            SizeSource::Layout => self.count_computed(at_least),
            SizeSource::Allocator(usable_size) => {
                // SAFETY: the caller's contract; the layout of `()` means unknown.
                let bytes = unsafe { usable_size(start, Layout::new::<()>()) };
                // An allocator without a size query returns the layout's size, which is too small
                // here.
                if bytes < at_least { self.count_computed(at_least) } else { self.count(bytes) }
            }
            // SAFETY: the block is live, which is all that the function requires.
            SizeSource::Function(size_of) => self.count(unsafe { size_of(start.cast()) }),
            SizeSource::Table(tracker) => {
                // SAFETY: the caller's contract; the layout of `()` means unknown.
                unsafe { self.claim_start(tracker, start) };
            }
        }
    }

    /// Adds bytes from a formula, where no block can be found. [`Measured::computed`] counts them.
    pub fn computed(&self, bytes: usize) {
        self.count_computed(bytes);
    }

    /// Adds a container's own blocks, without the blocks that its elements own.
    pub fn shallow<C: ?Sized + MallocShallowSizeOf>(&self, container: &'a C) {
        container.add_shallow_size_of(self);
    }

    /// Counts a value that is skipped because another thread has it locked. See [`Measured::busy`].
    pub fn busy(&self) {
        self.sums.count_busy();
    }

    /// Measures a value that is borrowed for less than `'a`. All its measurements are done on
    /// return.
    pub fn measure_borrowed<'b, V: ?Sized, R>(
        &self,
        lent: &'b V,
        measure: impl FnOnce(&'b V, &Ops<'b>) -> R,
    ) -> R
    where
        'a: 'b,
    {
        let ops = Ops {
            collection: self.collection,
            sums: self.sums,
            pending: self.pending,
            field: self.field.clone(),
            deepest: self.deepest,
            queue: Queue::new(),
            deferred: RefCell::default(),
            guards: Guards::default(),
        };
        let part = self.sums.part();
        let result = ops.run(|| measure(lent, &ops));
        self.switch_to(part);
        result
    }

    /// Returns the bytes added so far.
    pub(crate) fn bytes(&self) -> usize {
        self.look_up_pending();
        self.sums.bytes()
    }

    /// Calls `try_lock` once: without std, there are no threads to wait for.
    #[cfg(not(feature = "std"))]
    pub fn wait_for_lock<G>(&self, mut try_lock: impl FnMut() -> Option<G>) -> Option<G> {
        try_lock()
    }

    /// Counts a lock as held until the returned value is dropped.
    #[cfg(feature = "std")]
    pub(crate) fn holding(&self) -> impl Sized + 'a {
        self.collection.locks.hold()
    }

    /// Without std, nobody waits for a lock.
    #[cfg(not(feature = "std"))]
    pub(crate) fn holding(&self) -> impl Sized + 'a {}

    /// Claims a block of unknown layout by its start. If the tracker does not have it, the
    /// allocator reports its size.
    ///
    /// # Safety
    ///
    /// `start` is the start of a live block of the global allocator.
    #[cold]
    unsafe fn claim_start(&self, tracker: &dyn Tracker, start: *const u8) {
        let claim = Claim { address: start.addr(), size: None, place: Place::Start };
        let mut found = tracker.look_up(claim);
        if found.wrong == Some(Wrong::Untracked) {
            // SAFETY: the caller's contract; the layout of `()` means unknown.
            found.bytes = unsafe { (self.collection.usable_size)(start, Layout::new::<()>()) };
        }
        self.record(claim, found);
    }

    #[inline]
    fn count(&self, bytes: usize) {
        self.sums.count(bytes);
    }

    fn count_computed(&self, bytes: usize) {
        self.sums.count_computed(bytes);
    }

    #[inline]
    pub(crate) fn is_deep(&self) -> bool {
        stack_position() < self.deepest
    }

    #[cold]
    fn defer(&self, work: impl FnOnce(&Ops<'a>) + 'a) {
        let (field, part) = (self.field.get(), self.sums.part());
        self.deferred.borrow_mut().push(Deferred { field, part, work: Box::new(work) });
    }

    /// Counts further blocks for this part.
    #[inline]
    fn switch_to(&self, part: usize) {
        if part != self.sums.part() {
            self.look_up_pending();
            self.sums.switch_to(part);
        }
    }

    /// Runs a measurement and all that it defers, and then drops its guards.
    #[inline]
    fn run<R>(&self, measure: impl FnOnce() -> R) -> R {
        hold_during(HeldGuards(self), |_| {
            let collection = self.collection;
            // Dropped before the guards, and before what is lent.
            let _borrow = self.pending.map(|pending| EndOfBorrow { pending, collection });
            let result = measure();
            self.run_deferred();
            result
        })
    }

    fn run_deferred(&self) {
        // A closure, because a borrow in the loop's head would last for its body.
        let next = || self.deferred.borrow_mut().pop();
        self.drain_queue();
        while let Some(Deferred { field, part, work }) = next() {
            self.field.set(field);
            self.switch_to(part);
            work(self);
            self.drain_queue();
        }
        self.end_claims();
    }
}

impl core::fmt::Debug for Ops<'_> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("Ops").field("bytes", &self.sums.bytes()).finish_non_exhaustive()
    }
}

/// Records the address and size of a field.
#[cold]
fn visit<T: ?Sized>(recorder: &dyn Recorder, field: &'static Field, value: &T) {
    recorder.visits(field, core::ptr::from_ref(value).cast::<u8>().addr(), size_of_val(value));
}

/// Measures one value from start to end.
pub(crate) fn measure_with<T: ?Sized>(
    collection: &Collection<'_>,
    value: &T,
    measure: impl for<'a> FnOnce(&'a T, &Ops<'a>),
) -> Measured {
    let sums = Sums::default();
    let pending = collection.has_claims().then(Pending::new);
    {
        let ops = Ops {
            collection,
            sums: &sums,
            pending: pending.as_ref(),
            field: Cell::default(),
            deepest: stack_position().saturating_sub(STACK_BUDGET),
            queue: Queue::new(),
            deferred: RefCell::default(),
            guards: Guards::default(),
        };
        ops.run(|| measure(value, &ops));
    }
    sums.into_measured()
}

/// Returns an address in the current frame. Stacks grow down on every platform of std.
#[inline]
fn stack_position() -> usize {
    let here = 0_u8;
    core::hint::black_box(&raw const here).addr()
}
