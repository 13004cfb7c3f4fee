//! Heap details: the blocks broken down by scope, by stack and by type, one within the other, in any order.
//!
//! What is too small to show is one node, `<other>`, that says how many nodes it stands for: kids always add up to their
//! parent.

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::{Heap, Row, TextId};
use crate::analysis::{Totals, commas, percent};

/// What blocks are broken down by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Axis {
    /// The frames of their stacks, from the outermost.
    Stack,
    /// Their types.
    Type,
    /// The scopes of the program that they were allocated in, from the outermost.
    Scope,
}

/// What is shown.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BrowseOptions {
    /// What is broken down first, and what within that.
    pub by: Vec<Axis>,
    /// Only blocks with a frame that has this text in its name; stacks begin at the outermost such frame.
    pub within: Option<String>,
    /// Only blocks of types with this text in their names.
    pub of_type: Option<String>,
    /// Only blocks in scopes with this text in their names, or in the name of one around.
    pub in_scope: Option<String>,
    /// Nodes with less than this many percent of the whole are `<other>`.
    pub min_percent: f64,
}

impl Default for BrowseOptions {
    fn default() -> Self {
        Self {
            by: vec![Axis::Stack, Axis::Type],
            within: None,
            of_type: None,
            in_scope: None,
            min_percent: 1.0,
        }
    }
}

impl BrowseOptions {
    /// Whether no block is left out.
    fn is_of_all(&self) -> bool {
        self.within.is_none() && self.of_type.is_none() && self.in_scope.is_none()
    }
}

/// A node of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// What its blocks have in common.
    pub name: Name,
    /// What they amount to: always the sum of the kids, if there are any.
    pub totals: Totals,
    /// What they are broken down into, largest first, `<other>` last.
    pub kids: Vec<Node>,
}

/// What the blocks of a node have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Name {
    /// They are what was asked for.
    Root,
    /// A frame of their stacks.
    Frame(String),
    /// Their type; `[unknown]` if the frames do not tell it.
    Type(String),
    /// A scope that they were allocated in.
    Scope(String),
    /// They were allocated in no scope.
    NoScope,
    /// They were allocated by the frame or in the scope itself, not by what it called or in those inside it.
    Own,
    /// They are in so many nodes that are too small to show.
    Other(usize),
}

/// Breaks down a heap.
#[must_use]
pub fn browse(heap: &Heap, options: &BrowseOptions) -> Node {
    let mut blocks = Vec::new();
    for row in &heap.rows {
        let frames = &heap.stacks[row.kind.stack as usize];
        let has = |text: &str, frame: &u32| heap.frames[*frame as usize].function.contains(text);
        // Frames from here inwards are to come.
        let left = match &options.within {
            None => Some(frames.len()),
            Some(text) => frames.iter().rposition(|frame| has(text, frame)).map(|at| at + 1),
        };
        let is_of_type = |text: &String| type_name(heap, row).contains(text.as_str());
        let is_in_scope = |text: &String| {
            scope_names(heap, row).iter().any(|&name| heap.text(name).contains(text.as_str()))
        };
        let is_wanted = options.of_type.as_ref().is_none_or(is_of_type)
            && options.in_scope.as_ref().is_none_or(is_in_scope);
        if let Some(left) = left.filter(|_| is_wanted) {
            blocks.push(Blocks { row, left, scopes: 0 });
        }
    }
    let totals = sum(heap, &blocks);
    let tree = Tree { heap, min_percent: options.min_percent, whole: totals.usable() };
    Node { name: Name::Root, totals, kids: tree.kids(blocks, &options.by) }
}

/// The blocks of a row, how many of their frames are still to be looked at, and how many scopes were.
#[derive(Clone, Copy)]
struct Blocks<'h> {
    row: &'h Row,
    left: usize,
    scopes: usize,
}

/// The scopes of a row, outermost first.
fn scope_names<'h>(heap: &'h Heap, row: &Row) -> &'h [TextId] {
    &heap.scopes[row.kind.scope as usize]
}

fn type_name<'h>(heap: &'h Heap, row: &Row) -> &'h str {
    row.kind.block_type.map_or("[unknown]", |name| heap.text(name))
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
    fn kids(&self, blocks: Vec<Blocks<'h>>, by: &[Axis]) -> Vec<Node> {
        let Some((axis, rest)) = by.split_first() else { return Vec::new() };
        match axis {
            Axis::Type => {
                let name = |blocks: &Blocks<'h>| type_name(self.heap, blocks.row);
                self.nodes(groups(blocks, name, Name::Type), |_| rest)
            }
            Axis::Stack => self.frames(blocks, by, rest),
            Axis::Scope => self.scopes(blocks, by, rest),
        }
    }

    /// One scope further in.
    fn scopes(&self, blocks: Vec<Blocks<'h>>, by: &[Axis], rest: &[Axis]) -> Vec<Node> {
        let names = |blocks: &Blocks<'h>| scope_names(self.heap, blocks.row);
        let is_outermost = blocks.iter().any(|blocks| blocks.scopes == 0);
        let (own, inside): (Vec<_>, Vec<_>) =
            blocks.into_iter().partition(|blocks| names(blocks).len() == blocks.scopes);
        if inside.is_empty() && !is_outermost {
            return self.kids(own, rest);
        }
        let inwards =
            inside.into_iter().map(|blocks| Blocks { scopes: blocks.scopes + 1, ..blocks });
        let name = |blocks: &Blocks<'h>| self.heap.text(names(blocks)[blocks.scopes - 1]);
        let mut groups = groups(inwards.collect(), name, Name::Scope);
        if !own.is_empty() {
            groups.push((if is_outermost { Name::NoScope } else { Name::Own }, own));
        }
        self.nodes(groups, |name| if matches!(name, Name::Scope(_)) { by } else { rest })
    }

    /// One frame further in; what ends here is broken down by what comes next.
    fn frames(&self, blocks: Vec<Blocks<'h>>, by: &[Axis], rest: &[Axis]) -> Vec<Node> {
        let (own, called): (Vec<_>, Vec<_>) =
            blocks.into_iter().partition(|blocks| blocks.left == 0);
        if called.is_empty() {
            return self.kids(own, rest);
        }
        let inwards = called.into_iter().map(|blocks| Blocks { left: blocks.left - 1, ..blocks });
        let function = |blocks: &Blocks<'h>| {
            let frame = self.heap.stacks[blocks.row.kind.stack as usize][blocks.left];
            self.heap.frames[frame as usize].function.as_str()
        };
        let mut groups = groups(inwards.collect(), function, Name::Frame);
        if !own.is_empty() {
            groups.push((Name::Own, own));
        }
        self.nodes(groups, |name| if *name == Name::Own { rest } else { by })
    }

    /// The nodes of these groups, the small ones as one; `by` says what each is broken down by.
    fn nodes<'b>(
        &self,
        groups: Vec<(Name, Vec<Blocks<'h>>)>,
        by: impl Fn(&Name) -> &'b [Axis],
    ) -> Vec<Node> {
        let mut nodes = Vec::new();
        let (mut other, mut hidden) = (Totals::default(), 0);
        for (name, blocks) in groups {
            let totals = sum(self.heap, &blocks);
            if percent(totals.usable(), self.whole) < self.min_percent {
                other = other.plus(&totals);
                hidden += 1;
                continue;
            }
            let kids = self.kids(blocks, by(&name));
            nodes.push(Node { name, totals, kids });
        }
        nodes.sort_by(|a, b| {
            b.totals.usable().cmp(&a.totals.usable()).then_with(|| a.name.cmp(&b.name))
        });
        if hidden > 0 {
            nodes.push(Node { name: Name::Other(hidden), totals: other, kids: Vec::new() });
        }
        nodes
    }
}

/// The blocks by a text that they have in common.
fn groups<'h, 't>(
    blocks: Vec<Blocks<'h>>,
    text: impl Fn(&Blocks<'h>) -> &'t str,
    name: fn(String) -> Name,
) -> Vec<(Name, Vec<Blocks<'h>>)> {
    let mut groups: Vec<(Name, Vec<Blocks<'h>>)> = Vec::new();
    let mut places: FxHashMap<&str, usize> = FxHashMap::default();
    for blocks in blocks {
        let text = text(&blocks);
        let at = *places.entry(text).or_insert_with(|| {
            groups.push((name(text.to_owned()), Vec::new()));
            groups.len() - 1
        });
        groups[at].1.push(blocks);
    }
    groups
}

/// Writes the tree for a terminal. A node that is all of its parent is not indented further.
///
/// # Errors
///
/// If writing fails.
pub fn write_text(
    heap: &Heap,
    node: &Node,
    options: &BrowseOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let estimated = if heap.sample_bytes.is_some() { "about " } else { "" };
    let (bytes, blocks) = (commas(node.totals.usable()), commas(node.totals.blocks));
    let all = percent(node.totals.usable(), heap.totals().usable());
    let (program, kind) = (heap.process.name(), heap.amount_name());
    writeln!(
        out,
        "{program}: {estimated}{bytes} {kind} bytes in {blocks} blocks, {all:.2}% of the heap"
    )?;
    if options.is_of_all() {
        heap.accounts().write_text(out)?;
    }
    writeln!(out)?;
    writeln!(out, "{:>15} {:>8} {:>11}", "bytes", "share", "blocks")?;
    let mut pending: Vec<(usize, &Node)> = node.kids.iter().rev().map(|kid| (0, kid)).collect();
    let whole = node.totals.usable();
    while let Some((depth, node)) = pending.pop() {
        let (bytes, blocks) = (commas(node.totals.usable()), commas(node.totals.blocks));
        let share = format!("{:.2}%", percent(node.totals.usable(), whole));
        let name = name(&node.name, options.min_percent);
        writeln!(out, "{bytes:>15} {share:>8} {blocks:>11}  {:1$}{name}", "", 2 * depth)?;
        let depth = if node.kids.len() == 1 && depth > 0 { depth } else { depth + 1 };
        pending.extend(node.kids.iter().rev().map(|kid| (depth, kid)));
    }
    Ok(())
}

fn name(name: &Name, min_percent: f64) -> String {
    match name {
        Name::Root => "(all)".to_owned(),
        Name::Frame(function) => format!("ƒ {function}"),
        Name::Type(name) => format!("Ⓣ {name}"),
        Name::Scope(name) => format!("Ⓢ {name}"),
        Name::NoScope => "(in no scope)".to_owned(),
        Name::Own => "<self>".to_owned(),
        Name::Other(count) => {
            let each = if *count == 1 { "" } else { " each" };
            format!("<other>: {count} below {min_percent}%{each}")
        }
    }
}

/// Writes the tree as JSON, for programs, and how the heap comes to its sum.
///
/// # Errors
///
/// If writing fails.
pub fn write_json(heap: &Heap, node: &Node, out: &mut dyn Write) -> io::Result<()> {
    let mut root = value(node);
    root["accounts"] = heap.accounts().json();
    serde_json::to_writer_pretty(&mut *out, &root)?;
    writeln!(out)
}

fn value(node: &Node) -> Value {
    let (by, name) = match &node.name {
        Name::Root => ("root", Value::Null),
        Name::Frame(function) => ("frame", json!(function)),
        Name::Type(name) => ("type", json!(name)),
        Name::Scope(name) => ("scope", json!(name)),
        Name::NoScope => ("no-scope", Value::Null),
        Name::Own => ("self", Value::Null),
        Name::Other(count) => ("other", json!(count)),
    };
    let Totals { blocks, req, slop } = node.totals;
    json!({
        "by": by, "name": name, "bytes": node.totals.usable(), "blocks": blocks, "requested": req,
        "slop": slop, "kids": node.kids.iter().map(value).collect::<Vec<_>>(),
    })
}
