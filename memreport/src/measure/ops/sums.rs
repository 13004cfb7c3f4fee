//! Adds up the bytes of one measurement, part by part.

use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use crate::measure::measured::{Measured, Part};
use crate::tracker::claim::CountedBlocks;

/// The sums of one measurement.
#[derive(Default)]
#[repr(C)] // `blocks` must not be next to `bytes`.
pub(super) struct Sums {
    bytes: Cell<usize>,
    computed: Cell<usize>,
    // Next to `bytes`, the compiler would add both by vector instructions: six in place of two.
    blocks: Cell<usize>,
    busy: Cell<usize>,
    inferred: Cell<usize>,
    /// The part that bytes are counted for at this moment; 0 is the value itself.
    part: Cell<usize>,
    /// The sum of bytes when that part became current.
    part_began: Cell<usize>,
    parts: RefCell<Vec<PartSum>>,
}

struct PartSum {
    parent: usize,
    name: &'static str,
    description: &'static str,
    bytes: usize,
}

impl Sums {
    /// Returns the index of the part with this name below `parent`, from 1; 0 is the value itself.
    pub(super) fn child_part(
        &self,
        parent: usize,
        name: &'static str,
        description: &'static str,
    ) -> usize {
        let mut parts = self.parts.borrow_mut();
        let known = parts.iter().position(|part| part.parent == parent && part.name == name);
        let index = known.unwrap_or_else(|| {
            parts.push(PartSum { parent, name, description, bytes: 0 });
            parts.len() - 1
        });
        index + 1
    }

    /// Counts a block of this many bytes.
    #[inline]
    pub(super) fn count(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes);
        self.blocks.set(self.blocks.get() + 1);
    }

    /// Counts several blocks.
    #[inline]
    pub(super) fn count_blocks(&self, counted: CountedBlocks) {
        let CountedBlocks { blocks, bytes } = counted;
        self.bytes.set(self.bytes.get() + bytes);
        self.blocks.set(self.blocks.get() + blocks);
    }

    /// Counts bytes from a formula.
    pub(super) fn count_computed(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes);
        self.computed.set(self.computed.get() + bytes);
    }

    /// Counts a value that another thread has locked.
    pub(super) fn count_busy(&self) {
        self.busy.set(self.busy.get() + 1);
    }

    /// Counts a value whose blocks the tracker finds.
    pub(super) fn count_inferred(&self) {
        self.inferred.set(self.inferred.get() + 1);
    }

    /// Returns the bytes so far.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// Returns the part that bytes are counted for now.
    pub(super) fn part(&self) -> usize {
        self.part.get()
    }

    /// Counts further bytes for this part.
    #[inline]
    pub(super) fn switch_to(&self, part: usize) {
        if part != self.part.get() {
            self.settle();
            self.part.set(part);
        }
    }

    /// Adds the bytes counted since the last switch to the current part.
    #[cold]
    fn settle(&self) {
        let bytes = self.bytes.get() - self.part_began.replace(self.bytes.get());
        if let Some(part) = self.part.get().checked_sub(1) {
            self.parts.borrow_mut()[part].bytes += bytes;
        }
    }

    pub(super) fn into_measured(self) -> Measured {
        self.settle();
        let sums = self.parts.into_inner();
        let mut parts: Vec<Part> = Vec::with_capacity(sums.len());
        for sum in &sums {
            // A parent is always created before its children.
            let mut path = String::new();
            if let Some(parent) = sum.parent.checked_sub(1) {
                path.push_str(&parts[parent].path);
                path.push('/');
            }
            path.push_str(sum.name);
            parts.push(Part { path, bytes: sum.bytes, description: sum.description });
        }
        Measured {
            bytes: self.bytes.get(),
            blocks: self.blocks.get(),
            computed: self.computed.get(),
            busy: self.busy.get(),
            inferred: self.inferred.get(),
            parts,
        }
    }
}
