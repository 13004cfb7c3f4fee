//! Queues owning pointers until their memory has arrived, so that pointer chasing does not stall.
//!
//! Following a tree or a graph stalls on one cache miss per node. So a pointer is put into a queue,
//! its memory is prefetched, and it is measured after that has arrived.
//!
//! ```text
//!          ┌ ring: in flight ─────────────────────────────────────────────┐
//! enqueue ▶│ newest … half way: its pointees are prefetched … oldest      │▶ measure_pointee
//!    │     └───▲──────────────────────────────────────────────────────────┘      │
//!    │         │ the newest of the overflow, when the oldest is popped            ▼
//!    └─ full ─▶ overflow                                      enqueue its own pointers
//! ```
//!
//! The newest of the overflow comes first. So a tree is followed downwards, in as many places at
//! once as the ring holds, and the overflow stays small.
#![expect(unsafe_code, reason = "the places of a ring are empty until they are written")]

use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::mem::MaybeUninit;

use super::Ops;
use crate::field::Field;
use crate::measure::size_of::MallocSizeOf;

/// The number of pointers in flight: as many cache misses as a processor can have.
const RING_CAPACITY: usize = 16;

/// The position in the ring at which the pointer's own block has arrived and its pointees are
/// prefetched.
const HALF_WAY: usize = RING_CAPACITY / 2;

/// The most pointers in the overflow, a few KiB. Further pointers are measured at once.
const OVERFLOW_CAPACITY: usize = 256;

/// An owner of one block, which may contain further owners.
pub(crate) trait OwningPointer: MallocSizeOf {
    /// Adds the block and measures its contents.
    fn measure_pointee<'a>(&'a self, ops: &Ops<'a>);
}

/// A queued pointer, with the field and the part that it is measured for.
#[derive(Clone, Copy)]
struct Queued<'a> {
    owner: &'a dyn OwningPointer,
    field: Option<&'static Field>,
    part: usize,
}

/// The queued pointers.
pub(super) struct Queue<'a> {
    /// The pointers in flight. Invariant: `length` entries from the oldest on are initialized.
    ring: [Cell<MaybeUninit<Queued<'a>>>; RING_CAPACITY],
    /// The number of pointers popped so far. Modulo the capacity, it is the index of the oldest.
    popped: Cell<usize>,
    length: Cell<usize>,
    /// The pointers that did not fit into the ring.
    overflow: RefCell<Vec<Queued<'a>>>,
    /// True if a container has prefetched the value that is visited now, so that its pointers need
    /// not be queued.
    is_fetched: Cell<bool>,
}

impl<'a> Ops<'a> {
    /// Measures an owner's block and its contents: now if they have been prefetched, otherwise
    /// through the queue.
    #[inline]
    pub(crate) fn measure_pointee<T: OwningPointer>(&self, owner: &'a T) {
        if self.queue.is_fetched.replace(false) {
            self.add_with(owner, T::measure_pointee);
            self.queue.is_fetched.set(true);
        } else {
            self.enqueue(owner);
        }
    }

    #[inline(never)]
    fn enqueue<T: OwningPointer>(&self, owner: &'a T) {
        // With more pointers before it, the pointer that led to it prefetches it half way.
        if self.queue.length.get() < HALF_WAY {
            self.prefetch(owner);
        }
        let queued = Queued { owner, field: self.field.get(), part: self.sums.part() };
        if self.queue.length.get() < RING_CAPACITY {
            self.queue.push(queued);
        } else if self.queue.overflow.borrow().len() < OVERFLOW_CAPACITY {
            self.queue.overflow.borrow_mut().push(queued);
        } else {
            self.add_with(owner, T::measure_pointee);
        }
    }

    /// Measures all queued pointers.
    pub(super) fn drain_queue(&self) {
        while let Some(queued) = self.next_queued() {
            if self.queue.length.get() < HALF_WAY {
                self.fetch_pointees(queued.owner);
            }
            self.measure_one(queued);
        }
    }

    /// Measures the overflow, for a container that adds more and more pointers.
    #[inline]
    pub(super) fn drain_overflow(&self) {
        if !self.queue.overflow.borrow().is_empty() && !self.is_deep() {
            self.drain_overflow_slow();
        }
    }

    #[cold]
    fn drain_overflow_slow(&self) {
        let (field, part) = (self.field.get(), self.sums.part());
        let is_fetched = self.queue.is_fetched.replace(false);
        while !self.queue.overflow.borrow().is_empty() {
            let Some(queued) = self.next_queued() else { break };
            self.measure_one(queued);
        }
        self.queue.is_fetched.set(is_fetched);
        self.field.set(field);
        self.switch_to(part);
    }

    fn measure_one(&self, queued: Queued<'a>) {
        self.field.set(queued.field);
        self.switch_to(queued.part);
        queued.owner.measure_pointee(self);
    }

    /// Pops the oldest pointer. The newest of the overflow takes its place.
    #[inline(always)]
    fn next_queued(&self) -> Option<Queued<'a>> {
        let queued = self.queue.pop()?;
        if let Some(half_way) = self.queue.nth(HALF_WAY - 1) {
            self.fetch_pointees(half_way.owner);
        }
        let last = self.queue.overflow.borrow_mut().pop();
        if let Some(last) = last {
            self.queue.push(last);
        }
        Some(queued)
    }

    /// Marks visited values as prefetched until the guard is dropped.
    #[inline]
    pub(super) fn visiting_fetched(&self) -> Visiting<'_> {
        let is_fetched = &self.queue.is_fetched;
        Visiting { is_fetched, before: is_fetched.replace(true) }
    }
}

/// The guard of [`Ops::visiting_fetched`].
pub(super) struct Visiting<'q> {
    is_fetched: &'q Cell<bool>,
    before: bool,
}

impl Drop for Visiting<'_> {
    #[inline]
    fn drop(&mut self) {
        self.is_fetched.set(self.before);
    }
}

impl<'a> Queue<'a> {
    #[inline(always)]
    pub(super) const fn new() -> Self {
        Queue {
            ring: [const { Cell::new(MaybeUninit::uninit()) }; RING_CAPACITY],
            popped: Cell::new(0),
            length: Cell::new(0),
            overflow: RefCell::new(Vec::new()),
            is_fetched: Cell::new(false),
        }
    }

    /// Returns the place of the `index`-th oldest pointer.
    #[inline]
    fn place(&self, index: usize) -> &Cell<MaybeUninit<Queued<'a>>> {
        &self.ring[(self.popped.get().wrapping_add(index)) % RING_CAPACITY]
    }

    /// Returns the `index`-th oldest pointer.
    #[inline]
    fn nth(&self, index: usize) -> Option<Queued<'a>> {
        if index >= self.length.get() {
            return None;
        }
        // SAFETY: initialized, by the invariant of the ring.
        Some(unsafe { self.place(index).get().assume_init() })
    }

    /// Pushes a pointer. The ring must not be full.
    #[inline]
    fn push(&self, queued: Queued<'a>) {
        let length = self.length.get();
        self.place(length).set(MaybeUninit::new(queued));
        self.length.set(length + 1);
    }

    #[inline]
    fn pop(&self) -> Option<Queued<'a>> {
        let queued = self.nth(0)?;
        self.popped.set(self.popped.get().wrapping_add(1));
        self.length.set(self.length.get() - 1);
        Some(queued)
    }
}
