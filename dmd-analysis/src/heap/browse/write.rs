//! The tree of a heap as text and as JSON.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::super::model::Heap;
use super::{BrowseOptions, Name, Node};
use crate::analysis::number::saturated;
use crate::analysis::{Totals, UNTRACKED, commas, counted, percent};

/// Writes the tree for a terminal. Every level is indented: amounts of one depth add up.
///
/// # Errors
///
/// Returns an error if writing fails.
pub fn write_text(
    heap: &Heap,
    node: &Node,
    options: &BrowseOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let estimated = if heap.sample_bytes.is_some() { "about " } else { "" };
    let bytes = commas(node.totals.usable());
    let blocks = counted(node.totals.blocks, "block");
    let all = percent(node.totals.usable(), heap.totals().usable());
    let (program, kind) = (heap.process.name(), heap.amount_name());
    writeln!(out, "{program}: {estimated}{bytes} {kind} bytes in {blocks}, {all:.2}% of the heap")?;
    if options.is_of_all() {
        heap.accounts().write_text(out)?;
    }
    writeln!(out)?;
    writeln!(out, "{:>15} {:>8} {:>11}", "bytes", "share", "blocks")?;
    let mut pending: Vec<Line<'_>> = Line::children(node, 0).collect();
    let whole = node.totals.usable();
    while let Some(Line { depth, node }) = pending.pop() {
        let (bytes, blocks) = (commas(node.totals.usable()), commas(node.totals.blocks));
        let share = format!("{:.2}%", percent(node.totals.usable(), whole));
        let name = name(&node.name, options.min_percent);
        writeln!(out, "{bytes:>15} {share:>8} {blocks:>11}  {:1$}{name}", "", 2 * depth)?;
        pending.extend(Line::children(node, depth + 1));
    }
    Ok(())
}

/// A node that is not written yet.
struct Line<'n> {
    depth: usize,
    node: &'n Node,
}

impl Line<'_> {
    /// Returns the lines of a node's children, the last one first.
    fn children(node: &Node, depth: usize) -> impl Iterator<Item = Line<'_>> {
        node.children.iter().rev().map(move |node| Line { depth, node })
    }
}

fn name(name: &Name, min_percent: f64) -> String {
    match name {
        Name::Root => "(all)".to_owned(),
        Name::Frame(function) => format!("ƒ {function}"),
        Name::Type(name) => format!("Ⓣ {name}"),
        Name::Scope(name) => format!("Ⓢ {name}"),
        Name::NoScope => "(in no scope)".to_owned(),
        Name::Key { text, .. } => text.clone(),
        Name::Own => "<self>".to_owned(),
        Name::Untracked => UNTRACKED.to_owned(),
        Name::Other(count) => {
            let each = if *count == 1 { "" } else { " each" };
            format!("<other>: {count} below {min_percent}%{each}")
        }
    }
}

/// Writes the tree and the account of the heap as JSON.
///
/// # Errors
///
/// Returns an error if writing fails.
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
        Name::Key { axis, text } => (*axis, json!(text)),
        Name::Own => ("self", Value::Null),
        Name::Untracked => ("untracked", Value::Null),
        Name::Other(count) => ("other", json!(count)),
    };
    let Totals { blocks, req, slop } = node.totals;
    json!({
        "by": by, "name": name, "bytes": saturated(node.totals.usable()),
        "blocks": saturated(blocks), "requested": saturated(req), "slop": saturated(slop),
        "kids": node.children.iter().map(value).collect::<Vec<_>>(),
    })
}
