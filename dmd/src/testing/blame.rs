//! Which field a missed block belongs to: the one that holds the word that points at it.

use std::collections::{HashMap, HashSet};

use memreport::__private::{Claim, Place, Tracker};
use memreport::Field;

use crate::mem::sys::word_at;

/// Where a field lies in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) field: &'static Field,
    pub(super) address: usize,
    pub(super) size: usize,
}

/// For blocks that were not measured, the field that leads to each.
pub(super) struct Blame {
    fields: HashMap<usize, Option<&'static Field>>,
    type_name: &'static str,
}

const WORD: usize = size_of::<usize>();

impl Blame {
    /// Follows the words of the value, and of the unmeasured blocks they lead to.
    pub(super) fn find<T>(
        value: &T,
        ranges: &[Range],
        tracker: &dyn Tracker,
        measured: &HashSet<usize>,
    ) -> Self {
        let mut blame = Blame { fields: HashMap::new(), type_name: std::any::type_name::<T>() };
        // Inner fields come after those that they are in, and overrule them; what no field covers is the value's.
        let whole = (std::ptr::from_ref(value).addr(), size_of::<T>(), None);
        let fields = ranges.iter().map(|range| (range.address, range.size, Some(range.field)));
        let mut open: Vec<_> = Vec::new();
        for (address, size, field) in std::iter::once(whole).chain(fields) {
            for block in unmeasured(address, size, tracker, measured) {
                if blame.fields.insert(block.0, field).is_none() {
                    open.push(block);
                }
            }
        }
        while let Some((start, size)) = open.pop() {
            let field = blame.fields.get(&start).copied().flatten();
            for block in unmeasured(start, size, tracker, measured) {
                blame.fields.entry(block.0).or_insert_with(|| {
                    open.push(block);
                    field
                });
            }
        }
        blame
    }

    /// Where the block belongs, as words.
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

/// The live blocks that these words point to or into, and that nobody measured: start and size.
fn unmeasured(
    address: usize,
    size: usize,
    tracker: &dyn Tracker,
    measured: &HashSet<usize>,
) -> impl Iterator<Item = (usize, usize)> {
    let end = address + size;
    let words = (address.next_multiple_of(WORD)..)
        .step_by(WORD)
        .take_while(move |place| place + WORD <= end);
    words.filter_map(move |place| {
        let claim = Claim { address: word_at(place), size: None, place: Place::Inside };
        let block = tracker.look_up(claim).block?;
        (!measured.contains(&block.start)).then_some((block.start, block.requested))
    })
}
