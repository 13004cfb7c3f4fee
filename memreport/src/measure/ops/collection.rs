//! What all measurements of one collection share: who answers, who listens, which shared blocks were met.

use core::cell::{Cell, RefCell};

use crate::allocator::size_source::SizeSource;
use crate::field::Field;
use crate::tracker::recorder::{HeardOf, Recorder};

/// Shared blocks by address, and the reporter that met each.
#[cfg(feature = "std")]
type Met = std::collections::HashMap<usize, u32, core::hash::BuildHasherDefault<AddressHasher>>;
#[cfg(not(feature = "std"))]
type Met = alloc::collections::BTreeMap<usize, u32>;

/// One collection, or one look at a value.
pub(crate) struct Collection<'c> {
    pub(crate) sizes: SizeSource,
    pub(crate) recorder: Option<&'c dyn Recorder>,
    heard_of: Option<&'c HeardOf>,
    met: RefCell<Met>,
    /// Which of the collection's reporters runs.
    pub(crate) source: Cell<u32>,
    /// In whose name blocks are claimed.
    pub(crate) reporter: Cell<u32>,
}

impl<'c> Collection<'c> {
    /// One that tells nobody: for a look at a value.
    pub(crate) fn unmarked() -> Self {
        Collection::new(SizeSource::declared(), None)
    }

    pub(crate) fn new(sizes: SizeSource, recorder: Option<&'c dyn Recorder>) -> Self {
        Collection {
            sizes,
            recorder,
            heard_of: recorder.and_then(Recorder::heard_of),
            met: RefCell::default(),
            source: Cell::new(0),
            reporter: Cell::new(0),
        }
    }

    /// Who is to hear that this field is visited.
    #[inline]
    pub(crate) fn hears_of(&self, field: &'static Field) -> Option<&'c dyn Recorder> {
        self.recorder.filter(|_| self.heard_of.is_none_or(|heard| heard.is_news(field)))
    }

    /// Whether the shared block is met for the first time.
    pub(crate) fn meet(&self, address: usize) -> bool {
        let mut first = false;
        self.met.borrow_mut().entry(address).or_insert_with(|| {
            first = true;
            self.source.get()
        });
        first
    }
}

#[cfg(feature = "std")]
impl<'c> Collection<'c> {
    /// The next reporter begins.
    pub(crate) fn next_source(&self) {
        self.source.set(self.source.get() + 1);
    }

    /// What is measured from now on is measured in the name of this reporter.
    pub(crate) fn set_reporter(&self, reporter: u32) {
        self.reporter.set(reporter);
    }

    /// The reporter that runs failed: the shared blocks that it met are free for others to count.
    pub(crate) fn forget_source(&self) {
        let failed = self.source.get();
        self.met.borrow_mut().retain(|_, source| *source != failed);
    }

    /// Whether somebody can be asked for the size of a block.
    pub(crate) fn asks(&self) -> bool {
        !matches!(self.sizes, SizeSource::Layout)
    }

    /// Who hears of each claim.
    pub(crate) fn recorder(&self) -> Option<&'c dyn Recorder> {
        self.recorder
    }
}

impl core::fmt::Debug for Collection<'_> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("Collection").field("sizes", &self.sizes).finish_non_exhaustive()
    }
}

/// Spreads addresses, whose low bits are all alike, over a table.
#[cfg(feature = "std")]
#[derive(Default)]
struct AddressHasher(u64);

#[cfg(feature = "std")]
impl core::hash::Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    fn write_usize(&mut self, address: usize) {
        // Fibonacci hashing; the rotation brings the good bits to where the table looks.
        self.0 = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}
