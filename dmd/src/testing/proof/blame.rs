//! Finds the place of a missed block: the field, or the value, that contains a pointer to it.

use std::collections::{HashMap, HashSet};

use memreport::__private::{Claim, Place, Tracker};
use memreport::Field;

use super::freed::Freed;
use super::layouts::{self, InBlock};
use crate::mem::sys::word_at;

/// The memory of a field.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldRange {
    pub(super) field: &'static Field,
    pub(super) address: usize,
    pub(super) size: usize,
}

/// A block that was measured, and the field that led to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeasuredBlock {
    pub(super) start: usize,
    pub(super) field: Option<&'static Field>,
}

/// The place of a pointer to a block that was not measured.
#[derive(Clone, Copy, Debug)]
enum Pointer {
    Field(&'static Field),
    /// In the value, outside all fields that were visited, at this offset.
    Value(usize),
    /// In a measured block, outside all fields that were visited, at this offset.
    Block(MeasuredBlock, usize),
}

/// The places that lead to the blocks that were not measured.
pub(super) struct Blame {
    pointers: HashMap<usize, Pointer>,
    type_name: &'static str,
}

const WORD: usize = size_of::<usize>();

/// A live value, with the tracker that knows its blocks and the addresses of those that were
/// measured.
pub(super) struct Searched<'s> {
    pub(super) tracker: &'s dyn Tracker,
    pub(super) ranges: &'s [FieldRange],
    pub(super) measured: &'s [MeasuredBlock],
}

impl Blame {
    /// Follows the words of the value, of measured blocks, and of the unmeasured blocks that they
    /// lead to.
    pub(super) fn find<T>(value: &T, searched: &Searched<'_>) -> Self {
        let &Searched { tracker, ranges, measured } = searched;
        let starts: HashSet<usize> = measured.iter().map(|block| block.start).collect();
        let unmeasured =
            |address, size, place| unmeasured((address, size), place, tracker, &starts);
        let mut pointers: HashMap<usize, Pointer> = HashMap::new();
        let mut open: Vec<_> = Vec::new();
        // Fields replace the value, and inner fields come after those that contain them.
        let whole = std::ptr::from_ref(value).addr();
        for (word, block) in unmeasured(whole, size_of::<T>(), Place::Inside) {
            if pointers.insert(block.start, Pointer::Value(word - whole)).is_none() {
                open.push(block);
            }
        }
        for &FieldRange { field, address, size } in ranges {
            for (_, block) in unmeasured(address, size, Place::Inside) {
                if pointers.insert(block.start, Pointer::Field(field)).is_none() {
                    open.push(block);
                }
            }
        }
        for &from in measured {
            // Unused capacity holds old pointers to any block, so these are not followed.
            let size = size_at(from.start, tracker);
            for (word, block) in unmeasured(from.start, size, Place::Start) {
                let pointer = Pointer::Block(from, word - from.start);
                pointers.entry(block.start).or_insert(pointer);
            }
        }
        while let Some(Unmeasured { start, size }) = open.pop() {
            let Some(&through) = pointers.get(&start) else { continue };
            for (_, block) in unmeasured(start, size, Place::Inside) {
                pointers.entry(block.start).or_insert_with(|| {
                    open.push(block);
                    through
                });
            }
        }
        Blame { pointers, type_name: std::any::type_name::<T>() }
    }

    /// Describes the place of each missed block.
    pub(super) fn describe(&self, missed: &[Freed], freed: &[Freed]) -> Vec<String> {
        let pointers: Vec<_> =
            missed.iter().map(|block| self.pointers.get(&block.address).copied()).collect();
        let in_values = pointers.iter().any(|pointer| matches!(pointer, Some(Pointer::Value(_))));
        let of_value = in_values.then_some(self.type_name);
        let in_blocks = pointers.iter().filter_map(|pointer| match pointer {
            Some(Pointer::Block(from, at)) => Some(InBlock { start: from.start, at: *at }),
            _ => None,
        });
        let names = layouts::Names::read(of_value, in_blocks, freed);
        let describe = |pointer: &Option<Pointer>| match *pointer {
            Some(Pointer::Field(field)) => match field.reason() {
                None => format!("{field:?}"),
                Some(reason) => format!("{field:?}, skipped because \"{reason}\","),
            },
            Some(Pointer::Value(at)) => names
                .of_value(self.type_name, at)
                .unwrap_or_else(|| format!("something at byte {at} of `{}`", self.type_name)),
            Some(Pointer::Block(from, at)) => {
                let name = names.in_block(InBlock { start: from.start, at });
                match (name, from.field) {
                    (Some(name), Some(field)) => format!("{name}, in {field:?},"),
                    (Some(name), None) => name,
                    (None, Some(field)) => format!("something in a block of {field:?}"),
                    (None, None) => format!("something in a block of `{}`", self.type_name),
                }
            }
            None => format!("something in `{}`", self.type_name),
        };
        pointers.iter().map(describe).collect()
    }
}

/// A live block that was not measured.
#[derive(Clone, Copy)]
struct Unmeasured {
    start: usize,
    size: usize,
}

/// Returns the unmeasured live blocks that the words of a range point into, each with the address
/// of the word. The range is an address and a size.
fn unmeasured<'s>(
    (address, size): (usize, usize),
    pointed: Place,
    tracker: &'s dyn Tracker,
    measured: &'s HashSet<usize>,
) -> impl Iterator<Item = (usize, Unmeasured)> + use<'s> {
    let end = address + size;
    let words = (address.next_multiple_of(WORD)..)
        .step_by(WORD)
        .take_while(move |place| place + WORD <= end);
    words.filter_map(move |place| {
        let claim = Claim { address: word_at(place), size: None, place: pointed };
        let block = tracker.look_up(claim).block?;
        (!measured.contains(&block.start))
            .then_some((place, Unmeasured { start: block.start, size: block.requested }))
    })
}

/// Returns the size of the block that starts there, or 0 if there is none.
fn size_at(start: usize, tracker: &dyn Tracker) -> usize {
    let claim = Claim { address: start, size: None, place: Place::Start };
    tracker.look_up(claim).block.filter(|block| block.start == start).map_or(0, |b| b.requested)
}
