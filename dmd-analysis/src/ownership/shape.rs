//! The shape of types: where a value has pointers, of which kind, and to what.

mod compile;
mod names;
mod std_types;

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::measured::MeasureRules;
use crate::symbols::types::{Tag, TypeId, Types};
pub(super) use names::{shared_value, short};

/// The strength of a pointer as a holder, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Strength {
    /// The only owner: `Box`, `Vec`, `String`, a map's table or node.
    Owner,
    /// One of several owners: `Rc`, `Arc`.
    Shared,
    /// A raw pointer, or `NonNull`.
    Raw,
    /// An owner in a variable of a function, which may have been moved since. What it was moved
    /// into is a stronger one.
    Variable,
    /// A reference.
    Borrowed,
    /// A word that looks like a pointer.
    Word,
    /// Such a word where it is probably left over: in bytes and texts, and in a block to which
    /// stacks or registers lead and no static. These may lie where a freed block was.
    UnlikelyWord,
    /// Such a word of a stack or a register. It may be left over from a value that was moved into a
    /// block or a static.
    StackWord,
    /// Such a word that is in none of the program's own functions: there, it is left over more
    /// often.
    LibraryStackWord,
    /// `Weak`, or a child's pointer to its parent.
    Weak,
    /// A word where the type of its block keeps nothing: an entry that was removed.
    Stale,
    /// A pointer of a type that the user excludes.
    Excluded,
}

/// All strengths.
pub(super) const STRENGTHS: usize = 12;

/// The pointers of a value, by their offsets from its start.
#[derive(Debug, Clone)]
pub(super) enum Part {
    Pointer(Slot),
    /// The parts of one variant, which the tag tells.
    Variants {
        tag: Option<Tag>,
        cases: Vec<Case>,
    },
    /// The parts of each element, one after another.
    Repeat {
        offset: u64,
        stride: u64,
        count: Count,
        parts: Vec<Part>,
    },
}

/// The parts of a variant.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) value: Option<u64>,
    pub(super) parts: Vec<Part>,
}

/// The number of elements.
#[derive(Debug, Clone, Copy)]
pub(super) enum Count {
    Fixed(u64),
    /// The number of 2 bytes at this offset from the start of the value, plus one or not.
    At {
        offset: u64,
        plus: u64,
    },
}

/// A pointer in a value.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) offset: u64,
    pub(super) strength: Strength,
    pub(super) target: Target,
    pub(super) label: LabelId,
}

/// The layout of a block that a pointer leads to. Offsets are from the start of the value with the
/// pointer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target {
    Unknown,
    /// A value.
    Value(TypeId),
    /// A node of a `BTreeMap`: a leaf, or if the block is larger, an inner node.
    Node {
        leaf: TypeId,
        inner: Option<TypeId>,
    },
    /// Elements, behind `header` bytes.
    Elements {
        of: TypeId,
        header: u64,
        length: Option<u64>,
        head: Option<u64>,
    },
    /// The buffer of a vector that is iterated by value. Behind `buffer` is the pointer to it, and
    /// between those behind `next` and `end` are the elements that were not taken yet.
    Iterated {
        of: TypeId,
        buffer: u64,
        next: u64,
        end: u64,
    },
    /// The control bytes of a hash table, before which its elements are.
    Table {
        of: TypeId,
    },
    /// A value behind `header` bytes whose type the table of virtual functions tells.
    Dynamic {
        table: u64,
        header: u64,
    },
}

/// The number of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LabelId(pub(crate) u32);

impl LabelId {
    /// A word that only looks like a pointer.
    pub(crate) const WORD: Self = Self(0);
    /// A node of a map that holds a node below it.
    pub(crate) const NODE: Self = Self(1);
}

/// The use of a type, by which its fields are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Value,
    /// An entry of a hash table: a key and a value.
    Entry,
}

/// The shapes of all types that were needed so far.
#[derive(Debug)]
pub(super) struct Shapes<'t> {
    pub(super) types: &'t Types,
    known: FxHashMap<(TypeId, Role), Option<Rc<[Part]>>>,
    labels: Vec<String>,
    label_numbers: FxHashMap<String, LabelId>,
    /// The number of fields that the current type may still have.
    steps: u32,
    /// The parts of names of pointer types that do not count as holders.
    not_through: &'t [String],
    /// If present, only pointers that a derived reporter follows are found, and labels are the
    /// fields on the way.
    rules: Option<&'t MeasureRules>,
}

impl<'t> Shapes<'t> {
    pub(super) fn new(types: &'t Types, not_through: &'t [String]) -> Self {
        let word = "(a word that may be a pointer)".to_owned();
        Self {
            types,
            known: FxHashMap::default(),
            label_numbers: FxHashMap::default(),
            labels: vec![word, "(node)".to_owned()],
            steps: 0,
            not_through,
            rules: None,
        }
    }

    /// Returns the shapes of what derived reporters measure.
    pub(super) fn measured(types: &'t Types, rules: &'t MeasureRules) -> Self {
        Self { rules: Some(rules), ..Self::new(types, &[]) }
    }

    /// Returns the pointers of a type.
    pub(super) fn of(&mut self, id: TypeId, role: Role) -> Rc<[Part]> {
        if let Some(known) = self.known.get(&(id, role)) {
            // A type that contains itself without a pointer is damaged.
            return known.clone().unwrap_or_default();
        }
        self.known.insert((id, role), None);
        let parts: Rc<[Part]> = compile::compile(self, id, role).into();
        self.known.insert((id, role), Some(Rc::clone(&parts)));
        parts
    }

    /// Returns the pointer at an offset of a type, in whatever variant.
    pub(super) fn slot_at(&mut self, id: TypeId, offset: u64) -> Option<Slot> {
        find(&self.of(id, Role::Value), offset)
    }

    pub(super) fn label(&mut self, text: &str) -> LabelId {
        if let Some(&known) = self.label_numbers.get(text) {
            return known;
        }
        let number = LabelId(u32::try_from(self.labels.len()).unwrap_or(u32::MAX));
        self.labels.push(text.to_owned());
        self.label_numbers.insert(text.to_owned(), number);
        number
    }

    pub(super) fn label_text(&self, label: LabelId) -> &str {
        &self.labels[label.0 as usize]
    }

    /// Returns whether pointers of the type with this name do not count as holders.
    pub(super) fn is_excluded(&self, name: &str) -> bool {
        !self.not_through.is_empty()
            && self.not_through.iter().any(|wanted| names::matches(wanted, &short(name)))
    }
}

fn find(parts: &[Part], offset: u64) -> Option<Slot> {
    parts.iter().find_map(|part| match part {
        Part::Pointer(slot) => (slot.offset == offset).then(|| slot.clone()),
        Part::Variants { cases, .. } => cases.iter().find_map(|case| find(&case.parts, offset)),
        Part::Repeat { offset: start, stride, count, parts } => {
            let distance = offset.checked_sub(*start)?;
            let is_inside = match count {
                Count::Fixed(count) => distance.checked_div(*stride)? < *count,
                Count::At { .. } => true,
            };
            let within = distance.checked_rem(*stride)?;
            is_inside.then(|| find(parts, within)).flatten()
        }
    })
}
