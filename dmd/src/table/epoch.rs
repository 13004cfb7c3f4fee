//! Epochs: every collection begins a new one, and a block keeps the epoch that it was allocated in.
//!
//! An epoch tells blocks that a reporter allocates from those that it reports, and a block from a
//! later one at the same address. Three epochs take turns; before one is used again, blocks of its
//! last turn are aged.

#[cfg(not(loom))]
use crate::sample::plan;

/// Returns the current epoch, which is a part of the plan: hooks read both at once. A block of
/// another thread may still get the previous one.
#[cfg(not(loom))]
#[inline]
pub(crate) fn epoch() -> Epoch {
    Epoch::from_number(plan::plan().epoch())
}

/// Begins the next epoch, and returns it.
#[cfg(not(loom))]
pub(crate) fn begin_epoch() -> Epoch {
    let next = epoch().next();
    plan::set_epoch(next.number());
    next
}

/// The number of a collection, modulo three: a block has the epoch in which it was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch(u8);

impl Epoch {
    /// The first epoch, before any collection. Epoch 0 is older than all others.
    #[cfg(test)]
    pub(crate) const FIRST: Epoch = Epoch(1);

    pub(crate) fn from_number(number: u8) -> Self {
        Epoch(number & 3)
    }

    pub(crate) const fn number(self) -> u8 {
        self.0
    }

    pub(crate) fn next(self) -> Self {
        Epoch(self.0 % 3 + 1)
    }
}
