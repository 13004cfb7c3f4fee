//! The measuring hand: asks how big blocks are, counts shared ones once, and tells DMD who measured what.
#![expect(
    unsafe_code,
    reason = "hands block pointers to the allocator's size query; the duty is the caller's, stated at each method"
)]

mod collection;
mod sums;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::cell::{Cell, RefCell};

pub(crate) use collection::Collection;
use sums::Sums;
pub(crate) use sums::Total;

use crate::allocator::Sizes;
use crate::field::{Field, Shared};
use crate::size_of::{MallocShallowSizeOf, MallocSizeOf, Measured};
use crate::tracker::{Claim, Found, Place, Tracker, Who, Wrong};

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
    scope: Cell<Scope>,
    /// Where the stack stood when measuring began.
    stack: usize,
    later: RefCell<Vec<Later<'a>>>,
    /// Guards of what is put off: declared behind it, so that they are dropped after it, should a measurement panic.
    guards: RefCell<Vec<Box<dyn Kept + 'a>>>,
}

/// What is to be counted of a shared block.
struct Share {
    block: bool,
    contents: bool,
}

/// Anything that is only held.
trait Kept {}

impl<T> Kept for T {}

type Later<'a> = (Scope, Box<dyn FnOnce(&Ops<'a>) + 'a>);

/// What is being measured at this moment: blocks are blamed on it.
#[derive(Clone, Copy, Default)]
struct Scope {
    field: Option<&'static Field>,
    /// Index into the state's parts; 0 is the value itself.
    part: usize,
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
    #[inline]
    pub fn field<T: ?Sized + MallocSizeOf>(&self, field: &'static Field, value: &'a T) {
        self.field_with(field, value, T::add_size_of_excluding_this);
    }

    /// As [`field`](Self::field), with a function that measures the value.
    #[inline]
    pub fn field_with<T: ?Sized>(
        &self,
        field: &'static Field,
        value: &'a T,
        measure: impl FnOnce(&'a T, &Ops<'a>),
    ) {
        let outer = self.scope.get();
        let part = match field.own_part() {
            None => outer.part,
            Some((name, description)) => self.sums.part(outer.part, name, description),
        };
        self.visit(field, value);
        self.scope.set(Scope { field: Some(field), part });
        measure(value, self);
        self.scope.set(outer);
    }

    /// Says that this field is not measured.
    #[inline]
    pub fn skip<T: ?Sized>(&self, field: &'static Field, value: &T) {
        self.visit(field, value);
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
            Sizes::Layouts => self.count(layout.size()),
            // SAFETY: the caller's promise, for the allocator that the declaration belongs to.
            Sizes::Asked(usable_size) => self.count(unsafe { usable_size(start, layout) }),
            Sizes::Tracked(tracker) => {
                let size = Some(layout.size());
                // SAFETY: the caller's promise.
                unsafe { self.claim_start(tracker, start, size, layout) };
            }
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
            Sizes::Layouts => self.count_computed(0),
            Sizes::Asked(usable_size) => {
                // SAFETY: the caller's promise; the layout of `()` says that it is not known.
                self.count(unsafe { usable_size(start, Layout::new::<()>()) });
            }
            Sizes::Tracked(tracker) => {
                // SAFETY: the caller's promise; the layout of `()` says that it is not known.
                unsafe { self.claim_start(tracker, start, None, Layout::new::<()>()) };
            }
        }
    }

    /// A block with several owners, of which this is one. Says whether its contents are to be measured here.
    ///
    /// # Safety
    ///
    /// As for [`block`](Self::block).
    pub unsafe fn shared_block<T: ?Sized>(
        &self,
        start: *const T,
        layout: Layout,
        owners: usize,
    ) -> bool {
        let share = self.shares(start.cast::<u8>().addr(), owners);
        if share.block {
            // SAFETY: handed on.
            unsafe { self.block(start, layout) };
        }
        share.contents
    }

    /// The block that holds `inside`, by any pointer into it; none is fine. Where no tracker knows, `otherwise` bytes.
    pub fn enclosing_block<T: ?Sized>(&self, inside: *const T, otherwise: usize) {
        match self.collection.sizes {
            Sizes::Tracked(tracker) => {
                let address = inside.cast::<u8>().addr();
                let claim = Claim { address, size: None, place: Place::Inside };
                if self.claim(tracker, claim) == 0 && !tracker.knows_all() {
                    self.count_computed(otherwise);
                }
            }
            Sizes::Layouts | Sizes::Asked(_) => self.count_computed(otherwise),
        }
    }

    /// As [`enclosing_block`](Self::enclosing_block), for a block with several owners.
    pub fn shared_enclosing_block<T: ?Sized>(
        &self,
        inside: *const T,
        otherwise: usize,
        owners: usize,
    ) -> bool {
        let share = self.shares(inside.cast::<u8>().addr(), owners);
        if share.block {
            self.enclosing_block(inside, otherwise);
        }
        share.contents
    }

    /// Every block that holds one of these addresses, once each. Where no tracker knows, `otherwise` bytes in all.
    pub fn enclosing_blocks(&self, inside: impl IntoIterator<Item = *const u8>, otherwise: usize) {
        let Sizes::Tracked(tracker) = self.collection.sizes else {
            return self.count_computed(otherwise);
        };
        let mut last = 0..0;
        let mut blocks = Vec::new();
        for address in inside.into_iter().map(<*const u8>::addr) {
            if last.contains(&address) {
                continue;
            }
            if let Some(block) =
                tracker.look_up(Claim { address, size: None, place: Place::Inside }).block
            {
                last = block.start..block.start + block.usable;
                blocks.push(block.start);
            }
        }
        blocks.sort_unstable();
        blocks.dedup();
        let mut found = 0;
        for start in blocks {
            found +=
                self.claim(tracker, Claim { address: start, size: None, place: Place::Inside });
        }
        if !tracker.knows_all() {
            self.count_computed(otherwise.saturating_sub(found));
        }
    }

    /// The block that one of these machine words points to or into, if `is_it` knows it by the word's offset in it and by the
    /// size that was asked for.
    ///
    /// For containers that own an empty table, with no element left to point at. Says whether it was found.
    pub fn block_by_words(
        &self,
        words: impl IntoIterator<Item = usize>,
        is_it: impl Fn(usize, usize) -> bool,
    ) -> bool {
        let Sizes::Tracked(tracker) = self.collection.sizes else { return false };
        let claims =
            words.into_iter().map(|address| Claim { address, size: None, place: Place::Inside });
        for claim in claims {
            let block = tracker.look_up(claim).block;
            if block.is_some_and(|block| is_it(claim.address - block.start, block.requested)) {
                self.claim(tracker, claim);
                return true;
            }
        }
        false
    }

    /// Bytes from a formula, where no block can be asked about; the outcome says so.
    pub fn computed(&self, bytes: usize) {
        self.count_computed(bytes);
    }

    /// Whether blocks can be found by pointers into them at this moment.
    #[must_use]
    pub fn finds_enclosing_blocks(&self) -> bool {
        matches!(self.collection.sizes, Sizes::Tracked(tracker) if tracker.knows_all())
    }

    /// A container's own blocks, without what its elements own.
    pub fn shallow<C: ?Sized + MallocShallowSizeOf>(&self, container: &'a C) {
        container.add_shallow_size_of(self);
    }

    /// A value is locked by somebody else, and so is left out; the outcome says so.
    pub fn busy(&self) {
        self.sums.busy.set(self.sums.busy.get() + 1);
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
            scope: self.scope.clone(),
            stack: self.stack,
            later: RefCell::default(),
            guards: RefCell::default(),
        };
        let result = measure(lent, &ops);
        ops.drain();
        result
    }

    /// What was added so far.
    #[must_use]
    pub(crate) fn total(&self) -> Total {
        self.sums.total.get()
    }

    /// Holds a guard until these `Ops` have nothing left to do.
    pub(crate) fn keep(&self, guard: impl Sized + 'a) {
        self.guards.borrow_mut().push(Box::new(guard));
    }

    /// Whether the shared block at this address is counted here, and whether its contents are.
    fn shares(&self, address: usize, owners: usize) -> Share {
        match self.scope.get().field.map(Field::ownership).unwrap_or_default() {
            Shared::Elsewhere => Share { block: false, contents: false },
            // Contents that were met are not gone into again: they may own this block themselves, in a circle.
            Shared::Here => Share { block: true, contents: self.collection.meet(address) },
            Shared::First => {
                let first = owners <= 1 || self.collection.meet(address);
                Share { block: first, contents: first }
            }
        }
    }

    #[inline]
    fn visit<T: ?Sized>(&self, field: &'static Field, value: &T) {
        if let Some(recorder) = self.collection.recorder {
            recorder.visits(
                field,
                core::ptr::from_ref(value).cast::<u8>().addr(),
                size_of_val(value),
            );
        }
    }

    /// Claims the block, and says how many bytes that added.
    #[inline]
    fn claim(&self, tracker: &dyn Tracker, claim: Claim) -> usize {
        self.found(claim, tracker.look_up(claim))
    }

    /// Claims a block by its start. One that the tracker was never told of is measured by asking the allocator.
    ///
    /// # Safety
    ///
    /// `start` is that of a live block of the global allocator, made with this layout, or that of `()` if unknown.
    #[inline]
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
            found.bytes = unsafe { crate::allocator::usable_size(start, layout) };
        }
        self.found(claim, found);
    }

    #[inline]
    fn found(&self, claim: Claim, found: Found) -> usize {
        if let Some(recorder) = self.collection.recorder {
            let who =
                Who { reporter: self.collection.reporter.get(), field: self.scope.get().field };
            recorder.claimed(claim, found, who);
        }
        if found.bytes > 0 {
            self.count(found.bytes);
        }
        found.bytes
    }

    #[inline]
    fn count(&self, bytes: usize) {
        let mut total = self.sums.total.get();
        total.bytes += bytes;
        total.blocks += 1;
        self.sums.total.set(total);
        self.sums.count_part(self.scope.get().part, bytes);
    }

    fn count_computed(&self, bytes: usize) {
        let mut total = self.sums.total.get();
        total.bytes += bytes;
        total.computed += bytes;
        self.sums.total.set(total);
        self.sums.count_part(self.scope.get().part, bytes);
    }

    #[inline]
    pub(crate) fn is_deep(&self) -> bool {
        self.stack.abs_diff(stack_position()) > STACK_BUDGET
    }

    #[cold]
    fn put_off(&self, work: impl FnOnce(&Ops<'a>) + 'a) {
        self.later.borrow_mut().push((self.scope.get(), Box::new(work)));
    }

    fn drain(&self) {
        // Lent to a name first: a borrow in the loop's head would last for its body.
        let next = || self.later.borrow_mut().pop();
        while let Some((scope, work)) = next() {
            self.scope.set(scope);
            work(self);
        }
    }
}

impl core::fmt::Debug for Ops<'_> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("Ops").field("total", &self.total()).finish_non_exhaustive()
    }
}

/// Measures one value from its beginning to its end.
pub(crate) fn measure_with<T: ?Sized>(
    collection: &Collection<'_>,
    value: &T,
    measure: impl for<'a> FnOnce(&'a T, &Ops<'a>),
) -> Measured {
    let sums = Sums::default();
    let ops = Ops {
        collection,
        sums: &sums,
        scope: Cell::default(),
        stack: stack_position(),
        later: RefCell::default(),
        guards: RefCell::default(),
    };
    measure(value, &ops);
    ops.drain();
    drop(ops);
    sums.into_measured()
}

/// An address in the current frame. Only differences are used.
#[inline]
fn stack_position() -> usize {
    let here = 0_u8;
    core::hint::black_box(&raw const here).addr()
}
