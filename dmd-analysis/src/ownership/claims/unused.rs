//! The parts of a block where its type keeps nothing.

use std::ops::Range;

use crate::ownership::layout::words::Words;
use crate::ownership::layout::{Layout, is_full};
use crate::ownership::shape::Shapes;
use crate::symbols::types::{Field, Type, TypeId, TypeKind, Types};

/// The parts of a block without a value, though the words there may still be those of a value that
/// was there before.
pub(super) struct Unused<'a> {
    types: &'a Types,
    words: Words<'a>,
    layout: Layout,
    /// The capacity behind a vector's length, and the entries of a map's node behind its length.
    /// Sorted, and none overlaps another.
    places: Vec<Range<u64>>,
}

/// The most types within types that are looked at for one word. A damaged type may contain itself.
const MOST_TYPES: u32 = 1_000;

impl<'a> Unused<'a> {
    pub(super) fn of(layout: Layout, shapes: &Shapes<'a>, words: Words<'a>) -> Self {
        let types = shapes.types;
        let of = types.get(layout.type_of());
        let end = words.bytes();
        let mut places = match layout {
            Layout::Value { .. } => behind_length(of, shapes, words).unwrap_or_default(),
            Layout::Elements { length: None, .. } => Vec::new(),
            Layout::Elements { at, head, length: Some(length), .. } => {
                let capacity = end.saturating_sub(at).checked_div(of.size).unwrap_or(0);
                let place = |number: u64| at + number * of.size;
                let head = head.checked_rem(capacity).unwrap_or(0);
                let last = head.saturating_add(length.min(capacity));
                match last.checked_sub(capacity) {
                    // The elements go on at the first place.
                    Some(around) => std::iter::once(place(around)..place(head)).collect(),
                    None => vec![at..place(head), place(last)..end],
                }
            }
            // Empty buckets are looked up one by one: there may be millions.
            Layout::Table { .. } => Vec::new(),
        };
        places.sort_unstable_by_key(|place| place.start);
        Self { types, words, layout, places }
    }

    /// Returns whether nothing is kept in the word at an offset of the block.
    pub(super) fn has(&self, at: u64) -> bool {
        let next = self.places.partition_point(|place| place.start <= at);
        if next.checked_sub(1).is_some_and(|last| self.places[last].contains(&at)) {
            return true;
        }
        let of = self.layout.type_of();
        let Some(start) = self.value_around(at) else { return false };
        if self.is_empty_bucket(start) {
            return true;
        }
        let mut word = Word { types: self.types, words: self.words, at, types_left: MOST_TYPES };
        !word.has_value(of, start)
    }

    /// Returns whether the element at an offset is a hash table's bucket without one.
    fn is_empty_bucket(&self, start: u64) -> bool {
        let Layout::Table { of, control, buckets } = self.layout else { return false };
        let size = self.types.get(of).size.max(1);
        let bucket = (control.saturating_sub(start) / size).checked_sub(1);
        bucket.is_some_and(|bucket| bucket < buckets && !is_full(self.words, control + bucket))
    }

    /// Returns the offset of the value or element that contains an offset.
    fn value_around(&self, at: u64) -> Option<u64> {
        let size = self.types.get(self.layout.type_of()).size;
        let start = match self.layout {
            Layout::Value { at: start, .. } => start,
            Layout::Elements { at: first, .. } => at - at.checked_sub(first)?.checked_rem(size)?,
            Layout::Table { control, .. } => {
                let places = control.checked_sub(at)?.div_ceil(size.max(1));
                control.checked_sub(places.checked_mul(size)?)?
            }
        };
        (start <= at && at - start < size).then_some(start)
    }
}

/// A word of a block, in which parts of values are looked for.
struct Word<'a> {
    types: &'a Types,
    words: Words<'a>,
    at: u64,
    types_left: u32,
}

impl Word<'_> {
    /// Returns whether a value of this type at an offset keeps something in the word: it is not
    /// between its fields, and not of a variant that the value is not.
    fn has_value(&mut self, of: TypeId, start: u64) -> bool {
        let types = self.types;
        let of = types.get(of);
        let end = start.saturating_add(of.size);
        if of.size == 0 || end <= self.at || self.at + 8 <= start {
            return false;
        }
        self.types_left = self.types_left.saturating_sub(1);
        if self.types_left == 0 {
            return true;
        }
        match &of.kind {
            TypeKind::Plain | TypeKind::Pointer(_) | TypeKind::Union(_) => true,
            // A type whose fields are not known.
            TypeKind::Struct(fields) if fields.is_empty() => true,
            TypeKind::Struct(fields) => fields.iter().any(|field| self.has_field(field, start)),
            TypeKind::Array { element, count } => {
                let size = types.get(*element).size.max(1);
                let first = self.at.saturating_sub(start) / size;
                let behind = (self.at + 8).saturating_sub(start).div_ceil(size).min(*count);
                (first..behind).any(|number| self.has_value(*element, start + number * size))
            }
            TypeKind::Enum { tag: None, variants } => {
                variants.iter().any(|variant| self.has_variant(&variant.field, start))
            }
            TypeKind::Enum { tag: Some(tag), variants } => {
                let place = start.saturating_add(tag.offset);
                let value = self.words.number(place, tag.size);
                let is_in_word = place < self.at + 8 && self.at < place.saturating_add(tag.size);
                let variant =
                    value.and_then(|value| tag.choose(value, variants, |variant| variant.value));
                is_in_word || variant.is_none_or(|variant| self.has_variant(&variant.field, start))
            }
        }
    }

    /// Returns whether a variant keeps something in the word. Its type is as large as the enum,
    /// even without any field.
    fn has_variant(&mut self, variant: &Field, start: u64) -> bool {
        let fields = self.types.get(variant.of).fields();
        let start = start.saturating_add(variant.offset);
        fields.iter().any(|field| self.has_field(field, start))
    }

    fn has_field(&mut self, field: &Field, start: u64) -> bool {
        self.has_value(field.of, start.saturating_add(field.offset))
    }
}

/// Returns the places of keys, values and nodes below that a node of a `BTreeMap` does not use;
/// `None` for another type.
fn behind_length(of: &Type, shapes: &Shapes<'_>, words: Words<'_>) -> Option<Vec<Range<u64>>> {
    let types = shapes.types;
    let name = of.name.strip_prefix("alloc::collections::btree::node::")?;
    let is_inner = name.starts_with("InternalNode<");
    let (leaf, edges) = match is_inner {
        true => (types.get(of.field("data")?.of), Some(of.field("edges")?)),
        false if name.starts_with("LeafNode<") => (of, None),
        false => return None,
    };
    let base = if is_inner { of.field("data")?.offset } else { 0 };
    let length = words.number(base.checked_add(leaf.field("len")?.offset)?, 2)?;
    let behind = |base: u64, array: &Field, used: u64| {
        let TypeKind::Array { element, count } = types.get(array.of).kind else { return None };
        let size = types.get(element).size;
        let start = base.checked_add(array.offset)?;
        let place = |number: u64| start.checked_add(number.checked_mul(size)?);
        Some(place(used.min(count))?..place(count)?)
    };
    let mut parts = vec![
        behind(base, leaf.field("keys")?, length)?,
        behind(base, leaf.field("vals")?, length)?,
    ];
    if let Some(edges) = edges {
        parts.push(behind(0, edges, length.saturating_add(1))?);
    }
    Some(parts)
}
