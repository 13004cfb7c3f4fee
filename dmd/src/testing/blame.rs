//! Finds the field of a missed block: the field that contains a pointer to it.

use std::collections::{HashMap, HashSet};

use memreport::__private::{Claim, Place, Tracker};
use memreport::Field;

use crate::mem::sys::word_at;

/// The memory of a field.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldRange {
    pub(super) field: &'static Field,
    pub(super) address: usize,
    pub(super) size: usize,
}

/// The fields that lead to the blocks that were not measured.
pub(super) struct Blame {
    fields: HashMap<usize, Option<&'static Field>>,
    type_name: &'static str,
}

const WORD: usize = size_of::<usize>();

impl Blame {
    /// Follows the words of the value, and of the unmeasured blocks that they lead to.
    pub(super) fn find<T>(
        value: &T,
        ranges: &[FieldRange],
        tracker: &dyn Tracker,
        measured: &HashSet<usize>,
    ) -> Self {
        let mut blame = Blame { fields: HashMap::new(), type_name: std::any::type_name::<T>() };
        // Inner fields come after the fields that contain them, and replace them. Words outside
        // all fields belong to the value.
        let whole = (std::ptr::from_ref(value).addr(), size_of::<T>(), None);
        let fields = ranges.iter().map(|range| (range.address, range.size, Some(range.field)));
        let mut open: Vec<_> = Vec::new();
        for (address, size, field) in std::iter::once(whole).chain(fields) {
            for block in unmeasured(address, size, tracker, measured) {
                if blame.fields.insert(block.start, field).is_none() {
                    open.push(block);
                }
            }
        }
        while let Some(Unmeasured { start, size }) = open.pop() {
            let field = blame.fields.get(&start).copied().flatten();
            for block in unmeasured(start, size, tracker, measured) {
                blame.fields.entry(block.start).or_insert_with(|| {
                    open.push(block);
                    field
                });
            }
        }
        blame
    }

    /// Describes the field that a block belongs to.
    pub(super) fn of(&self, block: usize) -> String {
        match self.fields.get(&block) {
            Some(Some(field)) => match field.reason() {
                None => format!("{field:?}"),
                Some(reason) => format!("{field:?}, skipped because \"{reason}\","),
            },
            _ => format!("something in `{}`", self.type_name),
        }
    }
}

/// A live block that was not measured.
#[derive(Clone, Copy)]
struct Unmeasured {
    start: usize,
    size: usize,
}

/// Returns the unmeasured live blocks that the words of a range point into.
fn unmeasured(
    address: usize,
    size: usize,
    tracker: &dyn Tracker,
    measured: &HashSet<usize>,
) -> impl Iterator<Item = Unmeasured> {
    let end = address + size;
    let words = (address.next_multiple_of(WORD)..)
        .step_by(WORD)
        .take_while(move |place| place + WORD <= end);
    words.filter_map(move |place| {
        let claim = Claim { address: word_at(place), size: None, place: Place::Inside };
        let block = tracker.look_up(claim).block?;
        (!measured.contains(&block.start))
            .then_some(Unmeasured { start: block.start, size: block.requested })
    })
}
