//! The layout of one block, and the pointers in it.

pub(super) mod words;

use std::rc::Rc;

use crate::symbols::types::{TypeId, Types};

use super::shape::{Count, Part, Role, Shapes, Slot, Target};
use words::Words;

/// The layout of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Layout {
    /// A value, from an offset on.
    Value { of: TypeId, at: u64 },
    /// Elements from an offset on. The number of those in use, if it is known, begins at `head`
    /// and goes on at the first.
    Elements { of: TypeId, at: u64, head: u64, length: Option<u64> },
    /// A hash table whose control bytes begin at this offset.
    Table { of: TypeId, control: u64, buckets: u64 },
}

/// A block that a pointer leads into.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pointee {
    pub(super) bytes: u64,
    /// The offset in it that the pointer leads to.
    pub(super) into: u64,
}

impl Layout {
    /// Returns the layout of the block that a slot leads to; `None` if the slot does not tell it.
    /// `base` is the offset of the value with the slot among the words of the holder, which wraps
    /// around if the value begins before them.
    pub(super) fn of_target(
        shapes: &Shapes<'_>,
        target: Target,
        (words, base): (Words<'_>, u64),
        pointee: Pointee,
        dynamic: impl Fn(u64) -> Option<TypeId>,
    ) -> Option<Self> {
        let Pointee { bytes, into } = pointee;
        let size = |of: TypeId| shapes.types.get(of).size;
        if into != 0 && !matches!(target, Target::Table { .. }) {
            return None;
        }
        let layout = match target {
            Target::Unknown => return None,
            Target::Value(of) => Self::Value { of, at: 0 },
            Target::Node { leaf, inner } => {
                let inner = inner.filter(|&inner| bytes >= size(inner));
                Self::Value { of: inner.unwrap_or(leaf), at: 0 }
            }
            Target::Elements { of, header, length, head } => {
                let number =
                    |at: Option<u64>| at.and_then(|at| words.number(base.wrapping_add(at), 8));
                let head = number(head).unwrap_or(0);
                Self::Elements { of, at: header, head, length: number(length) }
            }
            Target::Iterated { of, buffer, next, end } => {
                let address = |at| words.number(base.wrapping_add(at), 8);
                let elements =
                    |from, to| address(to)?.checked_sub(address(from)?)?.checked_div(size(of));
                let head = elements(buffer, next).unwrap_or(0);
                Self::Elements { of, at: 0, head, length: elements(next, end) }
            }
            Target::Table { of } => {
                let fitting = into.checked_div(size(of)).unwrap_or(0);
                let buckets = fitting.min(bytes.saturating_sub(into + 16));
                Self::Table { of, control: into, buckets: power_of_two_below(buckets) }
            }
            Target::Dynamic { table, header } => {
                let of = dynamic(words.number(base.wrapping_add(table), 8)?)?;
                Self::Value { of, at: header }
            }
        };
        layout.fits(shapes, bytes).then_some(layout)
    }

    /// Returns whether the layout fits into a block of this size.
    pub(super) fn fits(self, shapes: &Shapes<'_>, bytes: u64) -> bool {
        let size = |of: TypeId| shapes.types.get(of).size;
        match self {
            Self::Value { of, at } => size(of) > 0 && at.saturating_add(size(of)) <= bytes,
            Self::Elements { of, at, length, .. } => {
                let used = size(of).saturating_mul(length.unwrap_or(0));
                size(of) > 0 && at.saturating_add(used) <= bytes
            }
            Self::Table { of, buckets, .. } => size(of) > 0 && buckets > 0,
        }
    }

    /// Returns the type of the value or of the elements.
    pub(super) fn type_of(self) -> TypeId {
        match self {
            Self::Value { of, .. } | Self::Elements { of, .. } | Self::Table { of, .. } => of,
        }
    }

    /// Returns the parts of a value or element.
    pub(super) fn parts(self, shapes: &mut Shapes<'_>) -> Rc<[Part]> {
        let role = match self {
            Self::Table { .. } => Role::Entry,
            _ => Role::Value,
        };
        shapes.of(self.type_of(), role)
    }

    /// Visits the pointers of a block of this layout, whose values have these parts: the start of
    /// each value, and the slot.
    pub(super) fn each_slot(
        self,
        (parts, types): (&[Part], &Types),
        words: Words<'_>,
        visit: &mut dyn FnMut(u64, &Slot),
    ) {
        if !parts.is_empty() {
            let size = types.get(self.type_of()).size;
            self.each_element(size, words, &mut |start| each_slot(parts, start, words, visit));
        }
    }

    /// Visits the offset of each element in use.
    fn each_element(self, size: u64, words: Words<'_>, visit: &mut dyn FnMut(u64)) {
        match self {
            Self::Value { at, .. } => visit(at),
            Self::Elements { at, head, length, .. } => {
                let bytes = words.bytes();
                let capacity = bytes.saturating_sub(at) / size;
                for number in 0..length.unwrap_or(capacity).min(capacity) {
                    visit(at + (head.saturating_add(number)) % capacity * size);
                }
            }
            Self::Table { control, buckets, .. } => {
                for bucket in (0..buckets).filter(|bucket| is_full(words, control + bucket)) {
                    if let Some(start) = control.checked_sub((bucket + 1) * size) {
                        visit(start);
                    }
                }
            }
        }
    }

    /// Returns the number of elements in use and of places for elements; `None` if they are not
    /// known.
    pub(super) fn load(self, size: u64, requested: u64, words: Words<'_>) -> Option<Load> {
        match self {
            Self::Value { .. } => None,
            // Behind counts, or a wide pointer, there is no more room than elements need.
            Self::Elements { at, .. } if at > 0 => None,
            Self::Elements { at, length, .. } => {
                let places = requested.saturating_sub(at).checked_div(size)?;
                Some(Load { used: length?.min(places), places })
            }
            Self::Table { control, buckets, .. } => {
                let full = (0..buckets).filter(|bucket| is_full(words, control + bucket)).count();
                Some(Load { used: full as u64, places: buckets })
            }
        }
    }
}

/// The use of a buffer or of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) used: u64,
    pub(super) places: u64,
}

fn power_of_two_below(number: u64) -> u64 {
    number.checked_ilog2().map_or(0, |log| 1 << log)
}

/// Returns whether a control byte is of a full bucket: its highest bit is clear.
pub(super) fn is_full(words: Words<'_>, control: u64) -> bool {
    words.number(control, 1).is_some_and(|byte| byte & 0x80 == 0)
}

fn each_slot(parts: &[Part], start: u64, words: Words<'_>, visit: &mut dyn FnMut(u64, &Slot)) {
    for part in parts {
        match part {
            Part::Pointer(slot) => visit(start, slot),
            Part::Variants { tag: None, cases } => {
                cases.iter().for_each(|case| each_slot(&case.parts, start, words, visit));
            }
            Part::Variants { tag: Some(tag), cases } => {
                let Some(value) = words.number(start.saturating_add(tag.offset), tag.size) else {
                    continue;
                };
                if let Some(case) = tag.choose(value, cases, |case| case.value) {
                    each_slot(&case.parts, start, words, visit);
                }
            }
            Part::Repeat { offset, stride, count, parts } => {
                let count = match *count {
                    Count::Fixed(count) => count,
                    // A node of a map has at most 11 entries.
                    Count::At { offset, plus } => words
                        .number(start.saturating_add(offset), 2)
                        .map_or(0, |length| length.min(11) + plus),
                };
                let last = words.bytes();
                let starts = (0..count).map(|number| {
                    start.saturating_add(*offset).saturating_add(number.saturating_mul(*stride))
                });
                for start in starts.take_while(|start| *start < last) {
                    each_slot(parts, start, words, visit);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_a_table_lie_before_its_control_bytes() {
        // Four buckets of 24 bytes, of which the first and the last are full, and 16 control bytes
        // more.
        let mut words = [0; 15];
        words[12] = 0xffff_ffff_05ff_ff11;
        words[13] = u64::MAX;
        let of = TypeId(0);
        let table = Layout::Table { of, control: 96, buckets: 4 };
        let mut found = Vec::new();
        table.each_element(24, Words::new(&words), &mut |start| found.push(start));
        assert_eq!(found, [72, 0]);
    }
}
