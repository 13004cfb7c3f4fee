//! The sums of one measurement, part by part.

use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use crate::size_of::{Measured, Part};

/// The sums of one measurement.
#[derive(Default)]
pub(super) struct Sums {
    pub(super) total: Cell<Total>,
    pub(super) busy: Cell<usize>,
    parts: RefCell<Vec<PartSum>>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Total {
    pub(crate) bytes: usize,
    pub(crate) blocks: usize,
    pub(crate) computed: usize,
}

struct PartSum {
    parent: usize,
    name: &'static str,
    description: &'static str,
    bytes: usize,
}

impl Sums {
    /// The part of this name below `parent`; parts are counted from 1, as 0 is the value itself.
    pub(super) fn part(
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

    #[inline]
    pub(super) fn count_part(&self, part: usize, bytes: usize) {
        if part > 0 {
            self.parts.borrow_mut()[part - 1].bytes += bytes;
        }
    }

    pub(super) fn into_measured(self) -> Measured {
        let total = self.total.get();
        let sums = self.parts.into_inner();
        let mut parts: Vec<Part> = Vec::with_capacity(sums.len());
        for sum in &sums {
            // A parent is always made before its children.
            let mut path = String::new();
            if let Some(parent) = sum.parent.checked_sub(1) {
                path.push_str(&parts[parent].path);
                path.push('/');
            }
            path.push_str(sum.name);
            parts.push(Part { path, bytes: sum.bytes, description: sum.description });
        }
        Measured {
            bytes: total.bytes,
            blocks: total.blocks,
            computed: total.computed,
            busy: self.busy.get(),
            parts,
        }
    }
}
