//! What lies behind pointers is measured while more of it is on its way from memory.
//!
//! A tree or a graph leads from one block to the next, and whoever follows it as it comes waits for each. So what a pointer leads to
//! is put in a queue, its memory is fetched, and it is measured when that has come.
//!
//! ```text
//!             ┌ on their way ────────────────────────────────────────────────┐
//! wait_for ─▶ │ newest … half way: what is behind it is fetched … the oldest │ ─▶ add_behind
//!     │       └───▲──────────────────────────────────────────────────────────┘       │
//!     │           │ the last of it, when the oldest comes out                        ▼
//!     └─ full ─▶ the list                                     wait_for, with what it leads to
//! ```
//!
//! As the last of the list goes first, a tree is followed downwards, in as many places at once as are on their way, and the list
//! holds only what those have passed by.
#![expect(unsafe_code, reason = "the places of a ring are empty until they are written")]

use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::mem::MaybeUninit;

use super::Ops;
use crate::field::Field;
use crate::measure::size_of::MallocSizeOf;

/// How many are on their way: as many as a processor can wait for at once.
const RING_CAPACITY: usize = 16;

/// How many are still before one when what is behind it is fetched: by then it has come itself.
const HALF_WAY: usize = RING_CAPACITY / 2;

/// How many the list may hold: a few KiB. What comes beyond that is measured at once.
const OVERFLOW_CAPACITY: usize = 256;

/// An owner of a block that may lead on.
pub(crate) trait OwningPointer: MallocSizeOf {
    /// Adds the block, and goes on with what is in it.
    fn measure_pointee<'a>(&'a self, ops: &Ops<'a>);
}

/// An owner that waits, with the field and the part that it is measured for.
#[derive(Clone, Copy)]
struct Pending<'a> {
    owner: &'a dyn OwningPointer,
    field: Option<&'static Field>,
    part: usize,
}

/// The owners that wait.
pub(crate) struct Queue<'a> {
    /// A ring of those on their way. Invariant: from the oldest on, so many as the length says are written.
    ring: [Cell<MaybeUninit<Pending<'a>>>; RING_CAPACITY],
    /// How many have come out. The place of the oldest is the rest of that.
    popped: Cell<usize>,
    length: Cell<usize>,
    /// The list.
    overflow: RefCell<Vec<Pending<'a>>>,
    /// What is visited now has been fetched by a container, so that what it leads to need not wait.
    is_fetched: Cell<bool>,
}

impl<'a> Ops<'a> {
    /// Goes on with an owner and what is behind it: now if that has been fetched, and when it has been if not.
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
        // Where more are before it, the one that led to it has fetched it half way.
        if self.queue.length.get() < HALF_WAY {
            self.prefetch(owner);
        }
        let pending = Pending { owner, field: self.field.get(), part: self.sums.part() };
        if self.queue.length.get() < RING_CAPACITY {
            self.queue.push(pending);
        } else if self.queue.overflow.borrow().len() < OVERFLOW_CAPACITY {
            self.queue.overflow.borrow_mut().push(pending);
        } else {
            self.add_with(owner, T::measure_pointee);
        }
    }

    /// Measures all that waits.
    pub(crate) fn drain_queue(&self) {
        while let Some(pending) = self.next_pending() {
            if self.queue.length.get() < HALF_WAY {
                self.fetch_pointees(pending.owner);
            }
            self.measure_one(pending);
        }
    }

    /// Measures what waits beside those on their way, for a container that leads to more and more.
    #[inline]
    pub(crate) fn drain_overflow(&self) {
        if !self.queue.overflow.borrow().is_empty() && !self.is_deep() {
            self.drain_overflow_slow();
        }
    }

    #[cold]
    fn drain_overflow_slow(&self) {
        let (field, part) = (self.field.get(), self.sums.part());
        let is_fetched = self.queue.is_fetched.replace(false);
        while !self.queue.overflow.borrow().is_empty() {
            let Some(pending) = self.next_pending() else { break };
            self.measure_one(pending);
        }
        self.queue.is_fetched.set(is_fetched);
        self.field.set(field);
        self.sums.switch_to(part);
    }

    fn measure_one(&self, pending: Pending<'a>) {
        self.field.set(pending.field);
        self.sums.switch_to(pending.part);
        pending.owner.measure_pointee(self);
    }

    /// The oldest. The last of the list takes its place.
    #[inline]
    fn next_pending(&self) -> Option<Pending<'a>> {
        let pending = self.queue.pop()?;
        if let Some(half_way) = self.queue.nth(HALF_WAY - 1) {
            self.fetch_pointees(half_way.owner);
        }
        let last = self.queue.overflow.borrow_mut().pop();
        if let Some(last) = last {
            self.queue.push(last);
        }
        Some(pending)
    }

    /// Until that is dropped, what is visited has been fetched.
    #[inline]
    pub(crate) fn visiting_fetched(&self) -> Visiting<'_> {
        let is_fetched = &self.queue.is_fetched;
        Visiting { is_fetched, before: is_fetched.replace(true) }
    }
}

/// See [`Ops::visiting_fetched`].
pub(crate) struct Visiting<'q> {
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
    pub(crate) const fn new() -> Self {
        Queue {
            ring: [const { Cell::new(MaybeUninit::uninit()) }; RING_CAPACITY],
            popped: Cell::new(0),
            length: Cell::new(0),
            overflow: RefCell::new(Vec::new()),
            is_fetched: Cell::new(false),
        }
    }

    /// The place so far behind the oldest.
    #[inline]
    fn place(&self, index: usize) -> &Cell<MaybeUninit<Pending<'a>>> {
        &self.ring[(self.popped.get().wrapping_add(index)) % RING_CAPACITY]
    }

    /// What waits so far behind the oldest.
    #[inline]
    fn nth(&self, index: usize) -> Option<Pending<'a>> {
        if index >= self.length.get() {
            return None;
        }
        // SAFETY: written, by the invariant of the ring.
        Some(unsafe { self.place(index).get().assume_init() })
    }

    /// One more, where the length is less than the ring's.
    #[inline]
    fn push(&self, pending: Pending<'a>) {
        let length = self.length.get();
        self.place(length).set(MaybeUninit::new(pending));
        self.length.set(length + 1);
    }

    #[inline]
    fn pop(&self) -> Option<Pending<'a>> {
        let pending = self.nth(0)?;
        self.popped.set(self.popped.get().wrapping_add(1));
        self.length.set(self.length.get() - 1);
        Some(pending)
    }
}
