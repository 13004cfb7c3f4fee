//! A word that publishes what its writer stored before it.

use super::sync::Ordering::{AcqRel, Acquire, Release};
use super::sync::{AtomicU32, const_fn};

/// A word that hooks read and others write. A thread that sees a value of it also sees all that its
/// writer stored before, such as the table that the value is an index of. On x86-64 this costs
/// nothing: each load acquires, and each store releases. It has cache lines of its own, so that no
/// neighbour's change takes it from the processors that read it.
#[repr(align(128))]
pub(crate) struct Published(AtomicU32);

impl Published {
    const_fn! {
        pub(crate) fn new(word: u32) -> Self {
            Published(AtomicU32::new(word))
        }
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> u32 {
        // Acquire, with the Release of `set` and `update`.
        self.0.load(Acquire)
    }

    pub(crate) fn set(&self, word: u32) {
        // Release, with the Acquire of `get`.
        self.0.store(word, Release);
    }

    /// Stores the word that `change` makes of the present one.
    pub(crate) fn update(&self, change: impl Fn(u32) -> u32) {
        // AcqRel, with `get` and with itself: what earlier writers stored stays visible.
        let _ = self.0.fetch_update(AcqRel, Acquire, |word| Some(change(word)));
    }
}
