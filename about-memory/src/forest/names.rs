//! Names and descriptions, each kept once.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::borrow::Cow;
use std::hash::BuildHasher;

/// A name in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Name(u32);

const LITERAL: u32 = 1 << 31;

impl Name {
    /// No name; reads as the empty one.
    pub(super) const NONE: Name = Name(u32::MAX);

    /// Whether its backslashes are meant, and do not stand for slashes.
    pub(crate) fn is_literal(self) -> bool {
        self != Name::NONE && self.0 & LITERAL != 0
    }

    fn index(self) -> usize {
        (self.0 & !LITERAL) as usize
    }
}

#[derive(Debug, Default)]
pub(super) struct Names {
    text: String,
    /// Where each name ends in `text`; it starts where the one before ends.
    ends: Vec<usize>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Names {
    pub(super) fn get(&self, name: Name) -> &str {
        if name == Name::NONE { "" } else { at(&self.text, &self.ends, name.index()) }
    }

    /// A segment as it is meant: its slashes are what a file writes as backslashes.
    pub(super) fn intern_segment(&mut self, segment: &str) -> Name {
        if segment.contains('\\') {
            self.intern(segment, true)
        } else {
            self.intern(&segment.replace('/', "\\"), false)
        }
    }

    pub(super) fn intern(&mut self, name: &str, is_literal: bool) -> Name {
        let Names { text, ends, table, hasher } = self;
        let hash = hasher.hash_one(name);
        let found = table.find(hash, |&index| at(text, ends, index as usize) == name);
        let index = match found {
            Some(&index) => index,
            None => {
                let index = u32::try_from(ends.len()).unwrap_or(u32::MAX) & !LITERAL;
                text.push_str(name);
                ends.push(text.len());
                table.insert_unique(hash, index, |&index| {
                    hasher.hash_one(at(text, ends, index as usize))
                });
                index
            }
        };
        Name(index | if is_literal { LITERAL } else { 0 })
    }
}

fn at<'t>(text: &'t str, ends: &[usize], index: usize) -> &'t str {
    let start = if index == 0 { 0 } else { ends[index - 1] };
    &text[start..ends[index]]
}

/// A name as people read it: paths write the slash of a URL as a backslash.
pub fn shown_name(name: &str) -> Cow<'_, str> {
    if name.contains('\\') { name.replace('\\', "/").into() } else { name.into() }
}
