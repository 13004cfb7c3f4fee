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

impl FieldRange {
    /// Returns the words that the field has only a part of. The rest is padding or another small
    /// field, so these words are not pointers.
    fn partial_words(&self) -> impl Iterator<Item = usize> {
        let ends = [self.address, self.address + self.size];
        let is_cut = |at: &usize| self.size > 0 && !at.is_multiple_of(WORD);
        ends.into_iter().filter(is_cut).map(|at| at - at % WORD)
    }
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
    ///
    /// Padding and unused capacity can hold old pointers. So a block belongs to a visited field
    /// that leads to it, however far away, before it belongs to a word outside of these, also if
    /// that is of a forgotten field; among such words, to the first. Once the visited field is
    /// mended, the other is named.
    pub(super) fn find<T>(value: &T, searched: &Searched<'_>) -> Self {
        let &Searched { tracker, ranges, measured } = searched;
        let starts: HashSet<usize> = measured.iter().map(|block| block.start).collect();
        let mut partial: Vec<usize> = ranges.iter().flat_map(FieldRange::partial_words).collect();
        partial.sort_unstable();
        partial.dedup();
        let mut search =
            Search { tracker, measured: &starts, partial, pointers: HashMap::new(), open: vec![] };
        // Inner fields come after those that contain them, and replace them.
        for &FieldRange { field, address, size } in ranges {
            for (_, block) in search.unmeasured(address, size, Place::Inside) {
                search.replace(block, Pointer::Field(field));
            }
        }
        search.follow();
        let whole = std::ptr::from_ref(value).addr();
        for (word, block) in search.unmeasured(whole, size_of::<T>(), Place::Inside) {
            search.add(block, Pointer::Value(word - whole));
            search.follow();
        }
        for &from in measured {
            // Unused capacity holds old pointers to any block, so these are not followed.
            let size = size_at(from.start, tracker);
            for (word, block) in search.unmeasured(from.start, size, Place::Start) {
                let pointer = Pointer::Block(from, word - from.start);
                search.pointers.entry(block.start).or_insert(pointer);
            }
        }
        Blame { pointers: search.pointers, type_name: std::any::type_name::<T>() }
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

/// The search for pointers to unmeasured blocks.
struct Search<'s> {
    tracker: &'s dyn Tracker,
    /// The starts of the measured blocks.
    measured: &'s HashSet<usize>,
    /// The words that a field has only a part of, sorted.
    partial: Vec<usize>,
    pointers: HashMap<usize, Pointer>,
    /// The blocks that were found and whose words are still to be read.
    open: Vec<Unmeasured>,
}

impl Search<'_> {
    /// Returns the unmeasured live blocks that the words of a range point into, each with the
    /// address of the word.
    fn unmeasured(&self, address: usize, size: usize, pointed: Place) -> Vec<(usize, Unmeasured)> {
        let end = address + size;
        let words = (address.next_multiple_of(WORD)..)
            .step_by(WORD)
            .take_while(|word| word + WORD <= end)
            .filter(|word| self.partial.binary_search(word).is_err());
        let found = words.filter_map(|word| {
            let claim = Claim { address: word_at(word), size: None, place: pointed };
            let block = self.tracker.look_up(claim).block?;
            (!self.measured.contains(&block.start))
                .then_some((word, Unmeasured { start: block.start, size: block.requested }))
        });
        found.collect()
    }

    /// Sets the place of a pointer to this block.
    fn replace(&mut self, block: Unmeasured, pointer: Pointer) {
        if self.pointers.insert(block.start, pointer).is_none() {
            self.open.push(block);
        }
    }

    /// Sets the place of a pointer to this block, if none was found before.
    fn add(&mut self, block: Unmeasured, pointer: Pointer) {
        self.pointers.entry(block.start).or_insert_with(|| {
            self.open.push(block);
            pointer
        });
    }

    /// Follows the words of the open blocks: what they lead to has the place that they have.
    fn follow(&mut self) {
        while let Some(Unmeasured { start, size }) = self.open.pop() {
            let Some(&through) = self.pointers.get(&start) else { continue };
            for (_, block) in self.unmeasured(start, size, Place::Inside) {
                self.add(block, through);
            }
        }
    }
}

/// Returns the size of the block that starts there, or 0 if there is none.
fn size_at(start: usize, tracker: &dyn Tracker) -> usize {
    let claim = Claim { address: start, size: None, place: Place::Start };
    tracker.look_up(claim).block.filter(|block| block.start == start).map_or(0, |b| b.requested)
}
