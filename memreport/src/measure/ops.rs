//! The measuring hand: asks how big blocks are, counts shared ones once, and tells DMD who measured what.
#![expect(
    unsafe_code,
    reason = "hands block pointers to the allocator's size query; the duty is the caller's, stated at each method"
)]

mod collection;
mod find;
#[cfg(any(feature = "im", feature = "imbl"))]
mod nodes;
mod prefetch;
mod queue;
mod share;
mod sums;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::cell::{Cell, RefCell};

pub(crate) use collection::Collection;
#[cfg(any(feature = "im", feature = "imbl"))]
pub(crate) use nodes::Nodes;
pub use prefetch::{Fetch, FetchAny, FetchMeasurable, Lookahead};
pub(crate) use queue::Behind;
use queue::Queue;
use sums::Sums;

use super::measured::Measured;
use super::size_of::{MallocShallowSizeOf, MallocSizeOf};
use crate::allocator::size_source::{SizeSource, usable_size};
use crate::field::Field;
use crate::tracker::Tracker;
use crate::tracker::claim::{Claim, Found, Place, Wrong};
use crate::tracker::recorder::{Recorder, Who};

/// How deep the stack may grow, in bytes, before further values wait on a list: half of the smallest stack in use.
const STACK_BUDGET: usize = 48 * 1024;

/// Measures values that are lent for `'a`.
///
/// Values are lent for as long as the measurement lasts, not just for the call: what lies too deep for the stack is put
/// off, and a list of a million boxed nodes is measured like any other. What is lent for less, such as the inside of a
/// lock, is measured by [`now`](Self::now).
pub struct Ops<'a> {
    collection: &'a Collection<'a>,
    sums: &'a Sums,
    /// What is being measured at this moment: blocks are blamed on it.
    field: Cell<Option<&'static Field>>,
    /// How deep the stack may grow before values are put off: an address.
    deepest: usize,
    queue: Queue<'a>,
    later: RefCell<Vec<Later<'a>>>,
    /// Guards of what is put off: declared behind it, so that they are dropped after it, should a measurement panic.
    guards: RefCell<Vec<Box<dyn Kept + 'a>>>,
}

/// Anything that is only held.
trait Kept {}

impl<T> Kept for T {}

/// What is put off, with the field and the part that it is measured for.
struct Later<'a> {
    field: Option<&'static Field>,
    part: usize,
    work: Box<dyn FnOnce(&Ops<'a>) + 'a>,
}

impl<'a> Ops<'a> {
    /// Goes on with a value: now, or later if the stack is deep.
    ///
    /// A container does so once for all its elements; whatever they own lies behind a container again.
    #[inline]
    pub fn add<T: ?Sized + MallocSizeOf>(&self, value: &'a T) {
        self.add_with(value, T::add_size_of_excluding_this);
    }

    /// As [`add`](Self::add), with a function that measures the value.
    #[inline]
    pub fn add_with<T: ?Sized>(&self, value: &'a T, measure: impl FnOnce(&'a T, &Ops<'a>) + 'a) {
        if self.is_deep() {
            self.put_off(move |ops| measure(value, ops));
        } else {
            measure(value, self);
        }
    }

    /// Goes on with a value, and blames what it owns on this field.
    #[inline(always)]
    pub fn field<T: ?Sized + MallocSizeOf>(&self, field: &'static Field, value: &'a T) {
        self.field_with(field, value, T::add_size_of_excluding_this);
    }

    /// As [`field`](Self::field), with a function that measures the value.
    #[inline(always)]
    pub fn field_with<T: ?Sized>(
        &self,
        field: &'static Field,
        value: &'a T,
        measure: impl FnOnce(&'a T, &Ops<'a>),
    ) {
        if let Some(recorder) = self.collection.hears_of(field) {
            visit(recorder, field, value);
        }
        let outer = self.field.replace(Some(field));
        match field.own_part() {
            None => measure(value, self),
            Some((name, description)) => self.part(name, description, || measure(value, self)),
        }
        self.field.set(outer);
    }

    /// Counts what `measure` adds for a part of the current part.
    #[cold]
    fn part(&self, name: &'static str, description: &'static str, measure: impl FnOnce()) {
        let outer = self.sums.part();
        self.sums.turn_to(self.sums.part_below(outer, name, description));
        measure();
        self.sums.turn_to(outer);
    }

    /// Says that this field is not measured.
    #[inline]
    pub fn skip<T: ?Sized>(&self, field: &'static Field, value: &T) {
        if let Some(recorder) = self.collection.recorder {
            visit(recorder, field, value);
        }
    }

    /// A block whose start and layout are known. A layout of size 0 is no block.
    ///
    /// # Safety
    ///
    /// Unless the size is 0, `start` could be given to the global allocator's `dealloc` with this layout.
    #[inline]
    pub unsafe fn block<T: ?Sized>(&self, start: *const T, layout: Layout) {
        if layout.size() == 0 {
            return;
        }
        let start = start.cast::<u8>();
        match self.collection.sizes {
            SizeSource::Layout => self.count(layout.size()),
            // SAFETY: the caller's promise, for the allocator that the declaration belongs to.
            SizeSource::Allocator(usable_size) => self.count(unsafe { usable_size(start, layout) }),
            SizeSource::Table(tracker) => match self.whole(tracker, start.addr(), layout.size()) {
                Some(bytes) => self.count(bytes),
                // SAFETY: the caller's promise.
                None => unsafe { self.claim_start(tracker, start, Some(layout.size()), layout) },
            },
        }
    }

    /// A block whose layout is not known, as behind a pointer of a foreign library.
    ///
    /// # Safety
    ///
    /// `start` is null or the start of a live block of the global allocator.
    pub unsafe fn malloc_size_of<T: ?Sized>(&self, start: *const T) {
        let start = start.cast::<u8>();
        match self.collection.sizes {
            _ if start.is_null() => {}
            // Nobody can say: nothing is the lower bound.
            SizeSource::Layout => self.count_computed(0),
            SizeSource::Allocator(usable_size) => {
                // SAFETY: the caller's promise; the layout of `()` says that it is not known.
                self.count(unsafe { usable_size(start, Layout::new::<()>()) });
            }
            SizeSource::Table(tracker) => {
                // SAFETY: the caller's promise; the layout of `()` says that it is not known.
                unsafe { self.claim_start(tracker, start, None, Layout::new::<()>()) };
            }
        }
    }

    /// A block whose start is known, and of its layout only that it has at least so many bytes.
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
                // SAFETY: the caller's promise; the layout of `()` says that it is not known.
                let bytes = unsafe { usable_size(start, Layout::new::<()>()) };
                // An allocator that only knows layouts says too little.
                if bytes < at_least { self.count_computed(at_least) } else { self.count(bytes) }
            }
            SizeSource::Table(tracker) => {
                // SAFETY: the caller's promise; the layout of `()` says that it is not known.
                unsafe { self.claim_start(tracker, start, None, Layout::new::<()>()) };
            }
        }
    }

    /// Bytes from a formula, where no block can be asked about; the outcome says so.
    pub fn computed(&self, bytes: usize) {
        self.count_computed(bytes);
    }

    /// A container's own blocks, without what its elements own.
    pub fn shallow<C: ?Sized + MallocShallowSizeOf>(&self, container: &'a C) {
        container.add_shallow_size_of(self);
    }

    /// A value is locked by somebody else, and so is left out; the outcome says so.
    pub fn busy(&self) {
        self.sums.count_busy();
    }

    /// Measures what is lent for less than `'a`, and is done with it on return.
    pub fn now<'b, V: ?Sized, R>(
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
            field: self.field.clone(),
            deepest: self.deepest,
            queue: Queue::new(),
            later: RefCell::default(),
            guards: RefCell::default(),
        };
        let part = self.sums.part();
        let result = measure(lent, &ops);
        ops.drain();
        self.sums.turn_to(part);
        result
    }

    /// The bytes that were added so far.
    pub(crate) fn bytes(&self) -> usize {
        self.sums.bytes()
    }

    /// Holds a guard until these `Ops` have nothing left to do.
    pub(crate) fn keep(&self, guard: impl Sized + 'a) {
        self.guards.borrow_mut().push(Box::new(guard));
    }

    /// Claims the block, and says how many bytes that added.
    #[inline]
    fn claim(&self, tracker: &dyn Tracker, claim: Claim) -> usize {
        self.found(claim, tracker.look_up(claim))
    }

    /// Claims a block that was made with this size, if it is as simple as that.
    #[inline]
    fn whole(&self, tracker: &dyn Tracker, start: usize, size: usize) -> Option<usize> {
        match self.collection.recorder {
            None => tracker.whole(start, size),
            Some(recorder) => recorder.claimed_whole(start, size, self.who()),
        }
    }

    #[inline]
    fn who(&self) -> Who {
        Who { reporter: self.collection.reporter.get(), field: self.field.get() }
    }

    /// Claims a block by its start. One that the tracker was never told of is measured by asking the allocator.
    ///
    /// # Safety
    ///
    /// `start` is that of a live block of the global allocator, made with this layout, or that of `()` if unknown.
    #[cold]
    unsafe fn claim_start(
        &self,
        tracker: &dyn Tracker,
        start: *const u8,
        size: Option<usize>,
        layout: Layout,
    ) {
        let claim = Claim { address: start.addr(), size, place: Place::Start };
        let mut found = tracker.look_up(claim);
        if found.wrong == Some(Wrong::Untracked) {
            // SAFETY: the caller's promise.
            found.bytes = unsafe { usable_size(start, layout) };
        }
        self.found(claim, found);
    }

    #[inline]
    fn found(&self, claim: Claim, found: Found) -> usize {
        if let Some(recorder) = self.collection.recorder {
            recorder.claimed(claim, found, self.who());
        }
        if found.bytes > 0 {
            self.count(found.bytes);
        }
        found.bytes
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
    fn put_off(&self, work: impl FnOnce(&Ops<'a>) + 'a) {
        let (field, part) = (self.field.get(), self.sums.part());
        self.later.borrow_mut().push(Later { field, part, work: Box::new(work) });
    }

    fn drain(&self) {
        // Lent to a name first: a borrow in the loop's head would last for its body.
        let next = || self.later.borrow_mut().pop();
        self.measure_due();
        while let Some(Later { field, part, work }) = next() {
            self.field.set(field);
            self.sums.turn_to(part);
            work(self);
            self.measure_due();
        }
    }
}

impl core::fmt::Debug for Ops<'_> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("Ops").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

/// Tells where a field lies.
#[cold]
fn visit<T: ?Sized>(recorder: &dyn Recorder, field: &'static Field, value: &T) {
    recorder.visits(field, core::ptr::from_ref(value).cast::<u8>().addr(), size_of_val(value));
}

/// Measures one value from its beginning to its end.
pub(crate) fn measure_with<T: ?Sized>(
    collection: &Collection<'_>,
    value: &T,
    measure: impl for<'a> FnOnce(&'a T, &Ops<'a>),
) -> Measured {
    let sums = Sums::default();
    {
        let ops = Ops {
            collection,
            sums: &sums,
            field: Cell::default(),
            deepest: stack_position().saturating_sub(STACK_BUDGET),
            queue: Queue::new(),
            later: RefCell::default(),
            guards: RefCell::default(),
        };
        measure(value, &ops);
        ops.drain();
    }
    sums.into_measured()
}

/// An address in the current frame. Stacks grow down, on every platform of std.
#[inline]
fn stack_position() -> usize {
    let here = 0_u8;
    core::hint::black_box(&raw const here).addr()
}
