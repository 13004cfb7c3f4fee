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
const FETCHED: usize = 16;

/// How many are still before one when what is behind it is fetched: by then it has come itself.
const HALF_WAY: usize = FETCHED / 2;

/// How many the list may hold: a few KiB. What comes beyond that is measured at once.
const MOST: usize = 256;

/// An owner of a block that may lead on.
pub(crate) trait Behind: MallocSizeOf {
    /// Adds the block, and goes on with what is in it.
    fn add_behind<'a>(&'a self, ops: &Ops<'a>);
}

/// An owner that waits, with the field and the part that it is measured for.
#[derive(Clone, Copy)]
struct Due<'a> {
    owner: &'a dyn Behind,
    field: Option<&'static Field>,
    part: usize,
}

/// The owners that wait.
pub(crate) struct Queue<'a> {
    /// A ring of those on their way. Invariant: from the oldest on, so many as the length says are written.
    fetched: [Cell<MaybeUninit<Due<'a>>>; FETCHED],
    /// How many have come out. The place of the oldest is the rest of that.
    out: Cell<usize>,
    length: Cell<usize>,
    /// The list.
    passed: RefCell<Vec<Due<'a>>>,
    /// What is visited now has been fetched by a container, so that what it leads to need not wait.
    is_fetched: Cell<bool>,
}

impl<'a> Ops<'a> {
    /// Goes on with an owner and what is behind it: now if that has been fetched, and when it has been if not.
    #[inline]
    pub(crate) fn add_behind<T: Behind>(&self, owner: &'a T) {
        if self.queue.is_fetched.replace(false) {
            self.add_with(owner, T::add_behind);
            self.queue.is_fetched.set(true);
        } else {
            self.wait_for(owner);
        }
    }

    #[inline(never)]
    fn wait_for<T: Behind>(&self, owner: &'a T) {
        // Where more are before it, the one that led to it has fetched it half way.
        if self.queue.length.get() < HALF_WAY {
            self.prefetch(owner);
        }
        let due = Due { owner, field: self.field.get(), part: self.sums.part() };
        if self.queue.length.get() < FETCHED {
            self.queue.push(due);
        } else if self.queue.passed.borrow().len() < MOST {
            self.queue.passed.borrow_mut().push(due);
        } else {
            self.add_with(owner, T::add_behind);
        }
    }

    /// Measures all that waits.
    pub(crate) fn measure_due(&self) {
        while let Some(due) = self.next_due() {
            if self.queue.length.get() < HALF_WAY {
                self.fetch_behind(due.owner);
            }
            self.measure_one(due);
        }
    }

    /// Measures what waits beside those on their way, for a container that leads to more and more.
    #[inline]
    pub(crate) fn keep_up(&self) {
        if !self.queue.passed.borrow().is_empty() && !self.is_deep() {
            self.measure_passed();
        }
    }

    #[cold]
    fn measure_passed(&self) {
        let (field, part) = (self.field.get(), self.sums.part());
        let is_fetched = self.queue.is_fetched.replace(false);
        while !self.queue.passed.borrow().is_empty() {
            let Some(due) = self.next_due() else { break };
            self.measure_one(due);
        }
        self.queue.is_fetched.set(is_fetched);
        self.field.set(field);
        self.sums.turn_to(part);
    }

    fn measure_one(&self, due: Due<'a>) {
        self.field.set(due.field);
        self.sums.turn_to(due.part);
        due.owner.add_behind(self);
    }

    /// The oldest. The last of the list takes its place.
    #[inline]
    fn next_due(&self) -> Option<Due<'a>> {
        let due = self.queue.pop()?;
        if let Some(half_way) = self.queue.nth(HALF_WAY - 1) {
            self.fetch_behind(half_way.owner);
        }
        let last = self.queue.passed.borrow_mut().pop();
        if let Some(last) = last {
            self.queue.push(last);
        }
        Some(due)
    }

    /// Until that is dropped, what is visited has been fetched.
    #[inline]
    pub(crate) fn visits_fetched(&self) -> Visiting<'_> {
        let is_fetched = &self.queue.is_fetched;
        Visiting { is_fetched, before: is_fetched.replace(true) }
    }
}

/// See [`Ops::visits_fetched`].
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
            fetched: [const { Cell::new(MaybeUninit::uninit()) }; FETCHED],
            out: Cell::new(0),
            length: Cell::new(0),
            passed: RefCell::new(Vec::new()),
            is_fetched: Cell::new(false),
        }
    }

    /// The place so far behind the oldest.
    #[inline]
    fn place(&self, behind: usize) -> &Cell<MaybeUninit<Due<'a>>> {
        &self.fetched[(self.out.get().wrapping_add(behind)) % FETCHED]
    }

    /// What waits so far behind the oldest.
    #[inline]
    fn nth(&self, behind: usize) -> Option<Due<'a>> {
        if behind >= self.length.get() {
            return None;
        }
        // SAFETY: written, by the invariant of the ring.
        Some(unsafe { self.place(behind).get().assume_init() })
    }

    /// One more, where the length is less than the ring's.
    #[inline]
    fn push(&self, due: Due<'a>) {
        let length = self.length.get();
        self.place(length).set(MaybeUninit::new(due));
        self.length.set(length + 1);
    }

    #[inline]
    fn pop(&self) -> Option<Due<'a>> {
        let due = self.nth(0)?;
        self.out.set(self.out.get().wrapping_add(1));
        self.length.set(self.length.get() - 1);
        Some(due)
    }
}
