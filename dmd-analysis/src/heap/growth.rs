//! The growth between two dumps, place by place, biggest first.
//!
//! A place is a stack of functions and a type, without lines and addresses, so that dumps of two
//! builds can be compared.

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde_json::json;

use super::model::{Heap, HeapFrame};
use super::table::Table;
use crate::analysis::number::saturated;
use crate::analysis::{Totals, commas};

/// The difference between two heaps.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Growth {
    /// The amount of all blocks of the first dump.
    pub before: Totals,
    /// The amount of all blocks of the second.
    pub after: Totals,
    /// True if the figures are estimates from samples. Small differences may be chance then.
    pub is_estimate: bool,
    /// The places that differ. The greatest growth is first, the greatest
    /// shrinkage last.
    pub places: Vec<Place>,
}

/// Blocks of one stack and one type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The functions, innermost first.
    pub functions: Vec<String>,
    /// File and line of each, where they are known, in the last dump that contains the place.
    pub lines: Vec<Option<String>>,
    /// The file name of the library with each, unless it is in the program itself.
    pub libraries: Vec<Option<String>>,
    /// The type, if the frames contain it.
    pub block_type: Option<String>,
    /// The amount in the first dump.
    pub before: Totals,
    /// The amount in the second.
    pub after: Totals,
}

impl Place {
    /// Returns the growth in bytes.
    #[must_use]
    pub fn bytes(&self) -> i128 {
        self.after.usable() - self.before.usable()
    }

    /// Returns the growth in blocks.
    #[must_use]
    pub fn blocks(&self) -> i128 {
        self.after.blocks - self.before.blocks
    }
}

/// The stack and type of a place.
#[derive(PartialEq, Eq, Hash)]
struct PlaceKey<'h> {
    stack: u32,
    block_type: Option<&'h str>,
}

/// Subtracts the first heap from the second.
#[must_use]
pub fn growth(before: &Heap, after: &Heap) -> Growth {
    let mut places: Vec<Place> = Vec::new();
    let mut stacks: Table<Vec<&str>> = Table::default();
    let mut numbers: FxHashMap<PlaceKey<'_>, usize> = FxHashMap::default();
    for (heap, is_after) in [(before, false), (after, true)] {
        let functions = |stack: &[u32]| -> Vec<&str> {
            stack.iter().map(|frame| &*heap.frames[*frame as usize].function).collect()
        };
        let of_heap: Vec<u32> =
            heap.stacks.iter().map(|stack| stacks.number(functions(stack))).collect();
        for row in &heap.rows {
            let stack = of_heap[row.kind.stack as usize];
            let block_type = row.kind.block_type.map(|name| heap.text(name));
            let at = *numbers.entry(PlaceKey { stack, block_type }).or_insert_with(|| {
                let functions = &stacks.values()[stack as usize];
                places.push(Place {
                    functions: functions.iter().map(|&name| name.to_owned()).collect(),
                    lines: Vec::new(),
                    libraries: Vec::new(),
                    block_type: block_type.map(str::to_owned),
                    before: Totals::default(),
                    after: Totals::default(),
                });
                places.len() - 1
            });
            let place = &mut places[at];
            let side = if is_after { &mut place.after } else { &mut place.before };
            // Of rows that differ in lines, the largest is first. Its lines are kept.
            if *side == Totals::default() {
                let frames = || heap.stack(row.kind.stack);
                place.lines = frames().map(HeapFrame::place).collect();
                place.libraries = frames().map(|frame| frame.library.clone()).collect();
            }
            *side = side.plus(&heap.amount(row));
        }
    }
    places.retain(|place| place.before != place.after);
    places.sort_by(|a, b| {
        (b.bytes(), b.blocks())
            .cmp(&(a.bytes(), a.blocks()))
            .then_with(|| (&a.functions, &a.block_type).cmp(&(&b.functions, &b.block_type)))
    });
    let is_estimate = before.sample_bytes.or(after.sample_bytes).is_some();
    Growth { before: before.totals(), after: after.totals(), is_estimate, places }
}

/// Writes the first `top` places, and the sum of all others as one line.
///
/// # Errors
///
/// Returns an error if writing fails.
pub fn write_text(growth: &Growth, top: usize, out: &mut dyn Write) -> io::Result<()> {
    let Growth { before, after, is_estimate, places } = growth;
    let about = if *is_estimate { "about " } else { "" };
    writeln!(
        out,
        "{about}{} bytes in {} blocks: from {} in {} to {} in {}",
        signed(after.usable() - before.usable()),
        signed(after.blocks - before.blocks),
        commas(before.usable()),
        commas(before.blocks),
        commas(after.usable()),
        commas(after.blocks),
    )?;
    for place in places.iter().take(top) {
        let block_type = place.block_type.as_deref().unwrap_or("[unknown]");
        let (bytes, blocks) = (signed(place.bytes()), signed(place.blocks()));
        let (from, to) = (commas(place.before.usable()), commas(place.after.usable()));
        writeln!(out, "\n{bytes} bytes in {blocks} blocks (from {from} to {to}): {block_type}")?;
        let places = place.lines.iter().zip(&place.libraries);
        for (function, (line, library)) in place.functions.iter().zip(places) {
            let place = match (line, library) {
                (Some(line), Some(library)) => format!(" ({line}, {library})"),
                (Some(place), None) | (None, Some(place)) => format!(" ({place})"),
                (None, None) => String::new(),
            };
            writeln!(out, "    {function}{place}")?;
        }
    }
    let rest = places.get(top..).unwrap_or_default();
    if !rest.is_empty() {
        let bytes: i128 = rest.iter().map(Place::bytes).sum();
        let blocks: i128 = rest.iter().map(Place::blocks).sum();
        let shrank = rest.iter().filter(|place| place.bytes() < 0).count();
        writeln!(
            out,
            "\n{} bytes in {} blocks: <other>, {} places behind the first {top}; {} of them shrank",
            signed(bytes),
            signed(blocks),
            commas(rest.len() as i128),
            commas(shrank as i128),
        )?;
    }
    Ok(())
}

fn signed(number: i128) -> String {
    if number > 0 { format!("+{}", commas(number)) } else { commas(number) }
}

/// Writes the first `top` places as JSON, and the sum of all others as `other`.
///
/// # Errors
///
/// Returns an error if writing fails.
pub fn write_json(growth: &Growth, top: usize, out: &mut dyn Write) -> io::Result<()> {
    let amount = |bytes, blocks| json!({ "bytes": saturated(bytes), "blocks": saturated(blocks) });
    let totals = |totals: &Totals| amount(totals.usable(), totals.blocks);
    let place = |place: &Place| {
        json!({
            "bytes": saturated(place.bytes()), "blocks": saturated(place.blocks()), "before": totals(&place.before),
            "after": totals(&place.after), "type": place.block_type, "stack": place.functions,
            "lines": place.lines, "libraries": place.libraries,
        })
    };
    let rest = growth.places.get(top..).unwrap_or_default();
    let value = json!({
        "before": totals(&growth.before),
        "after": totals(&growth.after),
        "isEstimate": growth.is_estimate,
        "places": growth.places.iter().take(top).map(place).collect::<Vec<_>>(),
        "other": {
            "places": rest.len(),
            "bytes": saturated(rest.iter().map(Place::bytes).sum()),
            "blocks": saturated(rest.iter().map(Place::blocks).sum()),
        },
    });
    serde_json::to_writer_pretty(&mut *out, &value)?;
    writeln!(out)
}
