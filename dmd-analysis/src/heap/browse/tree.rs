//! The nodes of the tree.

use rustc_hash::FxHashMap;

use super::super::model::{Heap, Row};
use super::BrowseOptions;
use super::axes::Rows;
use crate::analysis::{Class, Totals, percent};
use crate::axis::{Axis, Key, key};

/// A node of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// The property that its blocks share.
    pub name: Name,
    /// The amount of its blocks. Invariant: the sum of the children, if there are any.
    pub totals: Totals,
    /// The groups of its blocks, largest first, `<other>` last.
    pub children: Vec<Node>,
}

/// The property that the blocks of a node share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Name {
    /// None: these are all blocks of the tree.
    Root,
    /// A frame of their stacks.
    Frame(String),
    /// Their type; `[unknown]` if the frames do not contain it.
    Type(String),
    /// A scope that they were allocated in.
    Scope(String),
    /// They were allocated in no scope.
    NoScope,
    /// Their key on another axis.
    Key {
        /// The name of the axis.
        axis: &'static str,
        /// The key, or a text in parentheses for blocks without one.
        text: String,
    },
    /// The frame or scope of the parent allocated them, and nothing inside it.
    Own,
    /// They are from before tracking began or while it was off.
    Untracked,
    /// They are in this number of nodes that are too small to show.
    Other(usize),
}

/// Groups the blocks of a heap into a tree.
#[must_use]
pub fn browse(heap: &Heap, options: &BrowseOptions) -> Node {
    let depth = options.by.iter().find_map(|axis| match axis {
        Axis::Stack(cut) => Some(cut.depth?.get() as usize),
        _ => None,
    });
    let mut blocks = Vec::new();
    for row in &heap.rows {
        let frames = &heap.stacks[row.kind.stack as usize];
        let has = |text: &str, frame: &u32| heap.frames[*frame as usize].name.contains(text);
        let left = match &options.within {
            None => Some(frames.len()),
            Some(text) => frames.iter().rposition(|frame| has(text, frame)).map(|at| at + 1),
        };
        let is_of_type = |name: &String| type_name(heap, row) == name;
        let has_in_type = |text: &String| type_name(heap, row).contains(text.as_str());
        let is_in_scope =
            |text: &String| heap.scope_names(row.kind.scope).any(|name| name.contains(text));
        let is_untracked = row.kind.class == Class::Untracked;
        let is_kept = !is_untracked
            && options.of_type.as_ref().is_none_or(is_of_type)
            && options.of_type_with.as_ref().is_none_or(has_in_type)
            && options.in_scope.as_ref().is_none_or(is_in_scope);
        if let Some(left) = left.filter(|_| is_kept) {
            let left = left.min(depth.unwrap_or(usize::MAX));
            blocks.push(Blocks { row, left, scopes: 0 });
        }
    }
    // The untracked blocks have no property that options could ask for.
    let untracked = if options.is_of_all() { heap.untracked() } else { Totals::default() };
    let totals = sum(heap, &blocks).plus(&untracked);
    let tree = Tree { heap, min_percent: options.min_percent, whole: totals.usable() };
    let mut children = tree.children(blocks, &options.by);
    if untracked != Totals::default() {
        children.push(Node { name: Name::Untracked, totals: untracked, children: Vec::new() });
    }
    Node { name: Name::Root, totals, children }
}

/// The blocks of a row on their way down the tree.
#[derive(Clone, Copy)]
struct Blocks<'h> {
    row: &'h Row,
    /// The number of frames that are not nodes above yet: the next one is the outermost of them.
    left: usize,
    /// The number of scopes that are nodes above.
    scopes: usize,
}

/// The blocks of a node.
struct Group<'h> {
    name: Name,
    blocks: Vec<Blocks<'h>>,
}

const UNKNOWN_TYPE: &str = "[unknown]";

fn type_name<'h>(heap: &'h Heap, row: &Row) -> &'h str {
    row.kind.block_type.map_or(UNKNOWN_TYPE, |name| heap.text(name))
}

fn sum(heap: &Heap, blocks: &[Blocks<'_>]) -> Totals {
    blocks.iter().fold(Totals::default(), |sum, blocks| sum.plus(&heap.amount(blocks.row)))
}

struct Tree<'h> {
    heap: &'h Heap,
    min_percent: f64,
    whole: i128,
}

impl<'h> Tree<'h> {
    fn children(&self, blocks: Vec<Blocks<'h>>, by: &[Axis]) -> Vec<Node> {
        let Some((axis, rest)) = by.split_first() else { return Vec::new() };
        match axis {
            Axis::Stack(_) => self.frames(blocks, by, rest),
            Axis::Scope => self.scopes(blocks, by, rest),
            axis => self.nodes(self.keys(blocks, axis), |_| rest),
        }
    }

    /// Groups blocks by the next scope inwards.
    fn scopes(&self, blocks: Vec<Blocks<'h>>, by: &[Axis], rest: &[Axis]) -> Vec<Node> {
        let scopes = |blocks: &Blocks<'h>| &self.heap.scopes[blocks.row.kind.scope as usize];
        let is_outermost = blocks.iter().any(|blocks| blocks.scopes == 0);
        let (own, inside): (Vec<_>, Vec<_>) =
            blocks.into_iter().partition(|blocks| scopes(blocks).len() == blocks.scopes);
        if inside.is_empty() && !is_outermost {
            return self.children(own, rest);
        }
        let inwards =
            inside.into_iter().map(|blocks| Blocks { scopes: blocks.scopes + 1, ..blocks });
        let name = |blocks: &Blocks<'h>| self.heap.text(scopes(blocks)[blocks.scopes - 1]);
        let mut groups = groups(inwards.collect(), name, Name::Scope);
        if !own.is_empty() {
            let name = if is_outermost { Name::NoScope } else { Name::Own };
            groups.push(Group { name, blocks: own });
        }
        self.nodes(groups, |name| if matches!(name, Name::Scope(_)) { by } else { rest })
    }

    /// Groups blocks by the next frame inwards. Blocks without one are grouped by the next axis.
    fn frames(&self, blocks: Vec<Blocks<'h>>, by: &[Axis], rest: &[Axis]) -> Vec<Node> {
        let (own, called): (Vec<_>, Vec<_>) =
            blocks.into_iter().partition(|blocks| blocks.left == 0);
        if called.is_empty() {
            return self.children(own, rest);
        }
        let inwards = called.into_iter().map(|blocks| Blocks { left: blocks.left - 1, ..blocks });
        let function = |blocks: &Blocks<'h>| {
            let frame = self.heap.stacks[blocks.row.kind.stack as usize][blocks.left];
            self.heap.frames[frame as usize].name.as_str()
        };
        let mut groups = groups(inwards.collect(), function, Name::Frame);
        if !own.is_empty() {
            groups.push(Group { name: Name::Own, blocks: own });
        }
        self.nodes(groups, |name| if *name == Name::Own { rest } else { by })
    }

    /// Groups blocks by their keys on an axis without levels.
    fn keys(&self, blocks: Vec<Blocks<'h>>, axis: &Axis) -> Vec<Group<'h>> {
        let mut rows = Rows(self.heap);
        let mut by_key: FxHashMap<_, Vec<Blocks<'h>>> = FxHashMap::default();
        for blocks in blocks {
            by_key.entry(key(&mut rows, blocks.row, axis)).or_default().push(blocks);
        }
        let group = |(key, blocks): (Option<Key>, _)| {
            let text = key.as_ref().map(Key::describe);
            let name = match axis {
                Axis::Type => Name::Type(text.unwrap_or_else(|| UNKNOWN_TYPE.to_owned())),
                axis => {
                    let text = text.unwrap_or_else(|| axis.missing_text().to_owned());
                    Name::Key { axis: axis.name(), text }
                }
            };
            Group { name, blocks }
        };
        by_key.into_iter().map(group).collect()
    }

    /// Returns the nodes of groups, the small ones as one. `by` returns the axes within each node.
    fn nodes<'b>(&self, groups: Vec<Group<'h>>, by: impl Fn(&Name) -> &'b [Axis]) -> Vec<Node> {
        let mut nodes = Vec::new();
        let (mut other, mut hidden) = (Totals::default(), 0);
        for Group { name, blocks } in groups {
            let totals = sum(self.heap, &blocks);
            if percent(totals.usable(), self.whole) < self.min_percent {
                other = other.plus(&totals);
                hidden += 1;
                continue;
            }
            let children = self.children(blocks, by(&name));
            nodes.push(Node { name, totals, children });
        }
        nodes.sort_by(|a, b| {
            b.totals.usable().cmp(&a.totals.usable()).then_with(|| a.name.cmp(&b.name))
        });
        if hidden > 0 {
            nodes.push(Node { name: Name::Other(hidden), totals: other, children: Vec::new() });
        }
        nodes
    }
}

/// Groups blocks by a text that they share.
fn groups<'h, 't>(
    blocks: Vec<Blocks<'h>>,
    text: impl Fn(&Blocks<'h>) -> &'t str,
    name: fn(String) -> Name,
) -> Vec<Group<'h>> {
    let mut groups: Vec<Group<'h>> = Vec::new();
    let mut places: FxHashMap<&str, usize> = FxHashMap::default();
    for blocks in blocks {
        let text = text(&blocks);
        let at = *places.entry(text).or_insert_with(|| {
            groups.push(Group { name: name(text.to_owned()), blocks: Vec::new() });
            groups.len() - 1
        });
        groups[at].blocks.push(blocks);
    }
    groups
}
