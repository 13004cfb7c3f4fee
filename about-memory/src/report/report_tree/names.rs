//! Interns the texts of a report tree: names, descriptions and paths.

use super::node::NodeId;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::borrow::Cow;
use std::hash::BuildHasher;

/// A piece of interned text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    start: usize,
    length: usize,
}

impl Span {
    pub(crate) fn of(self, text: &str) -> &str {
        &text[self.start..self.start + self.length]
    }

    pub(crate) fn append(text: &mut String, piece: &str) -> Self {
        let start = text.len();
        text.push_str(piece);
        Span { start, length: piece.len() }
    }
}

/// The name of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    pub(crate) span: Span,
    /// True if its backslashes are literal, and do not stand for slashes.
    pub(crate) is_literal: bool,
}

/// A name that may not be interned yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewName<'n> {
    pub(crate) text: &'n str,
    pub(crate) is_literal: bool,
}

impl<'n> From<&'n str> for NewName<'n> {
    fn from(text: &'n str) -> Self {
        NewName { text, is_literal: false }
    }
}

/// An interner.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    text: String,
    /// Each with its hash, so that the table can grow without the texts.
    known: HashTable<(u64, Span)>,
    hasher: DefaultHashBuilder,
}

impl Texts {
    pub(crate) fn get(&self, span: Span) -> &str {
        span.of(&self.text)
    }

    pub(crate) fn keep(&mut self, text: &str) -> Span {
        let hash = self.hasher.hash_one(text);
        let is_same = |known: &(u64, Span)| known.0 == hash && known.1.of(&self.text) == text;
        if let Some(known) = self.known.find(hash, is_same) {
            return known.1;
        }
        let span = Span::append(&mut self.text, text);
        self.known.insert_unique(hash, (hash, span), |known| known.0);
        span
    }
}

/// A map from process and path up to the last slash to a node. Most reports have siblings, so one
/// look-up replaces one for each segment.
#[derive(Debug, Default)]
pub(crate) struct Directories {
    text: String,
    known: HashTable<(u64, Directory)>,
    hasher: DefaultHashBuilder,
}

#[derive(Clone, Copy, Debug)]
struct Directory {
    process: usize,
    path: Span,
    node: NodeId,
}

impl Directories {
    pub(crate) fn find(&self, process: usize, path: &str) -> Option<NodeId> {
        let hash = self.hasher.hash_one((process, path));
        let is_same = |(known_hash, known): &(u64, Directory)| {
            *known_hash == hash && known.process == process && known.path.of(&self.text) == path
        };
        self.known.find(hash, is_same).map(|(_, known)| known.node)
    }

    pub(crate) fn insert(&mut self, process: usize, path: &str, node: NodeId) {
        let hash = self.hasher.hash_one((process, path));
        let path = Span::append(&mut self.text, path);
        self.known.insert_unique(hash, (hash, Directory { process, path, node }), |known| known.0);
    }
}

/// Returns a name for people. Paths write the slashes of URLs as backslashes.
pub fn shown_name(name: &str) -> Cow<'_, str> {
    if name.contains('\\') { name.replace('\\', "/").into() } else { name.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_found_by_process_and_path() {
        let mut directories = Directories::default();
        let places = [(0, "a/b"), (0, "a"), (1, "a/b"), (7, "")];
        for (node, (process, path)) in (3..).map(NodeId).zip(places) {
            directories.insert(process, path, node);
        }
        for (node, (process, path)) in (3..).map(NodeId).zip(places) {
            assert_eq!(directories.find(process, path), Some(node));
        }
        for (process, path) in [(1, "a"), (0, "a/"), (2, "a/b"), (0, "")] {
            assert_eq!(directories.find(process, path), None, "{process} {path:?}");
        }
    }
}
