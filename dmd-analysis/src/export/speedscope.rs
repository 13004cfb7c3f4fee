//! Speedscope's file: a profile of all bytes, and one for each class of blocks.

use std::io::{self, Write};

use serde::Serialize;

use crate::analysis::Class;
use crate::heap::table::Table;
use crate::heap::{Heap, HeapFrame};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireFile<'h> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: &'static str,
    name: &'h str,
    active_profile_index: u32,
    shared: WireShared<'h>,
    profiles: Vec<WireProfile>,
}

#[derive(Serialize)]
struct WireShared<'h> {
    frames: Vec<WireFrame<'h>>,
}

#[derive(Serialize)]
struct WireFrame<'h> {
    name: &'h str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'h str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

impl<'h> From<&'h HeapFrame> for WireFrame<'h> {
    fn from(frame: &'h HeapFrame) -> Self {
        Self { name: &frame.function, file: frame.file.as_deref(), line: frame.line }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireProfile {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    /// The numbers of frames, the outermost first.
    samples: Vec<Vec<u32>>,
    weights: Vec<u64>,
}

/// Writes the file.
///
/// # Errors
///
/// Returns an error if writing fails.
pub fn write(heap: &Heap, out: &mut dyn Write) -> io::Result<()> {
    let all = profile(heap, None);
    let of_classes = heap.classes().iter().map(|class| profile(heap, Some(*class)));
    let file = WireFile {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: concat!("dmd ", env!("CARGO_PKG_VERSION")),
        name: heap.process.name(),
        active_profile_index: 0,
        shared: WireShared { frames: heap.frames.iter().map(WireFrame::from).collect() },
        profiles: std::iter::once(all).chain(of_classes).collect(),
    };
    serde_json::to_writer(&mut *out, &file)?;
    writeln!(out)
}

fn profile(heap: &Heap, class: Option<Class>) -> WireProfile {
    let rows = heap.rows.iter().filter(|row| class.is_none_or(|class| row.kind.class == class));
    let mut stacks: Table<u32> = Table::default();
    let mut weights: Vec<u64> = Vec::new();
    for row in rows {
        let at = stacks.number(row.kind.stack) as usize;
        if at == weights.len() {
            weights.push(0);
        }
        let bytes = u64::try_from(heap.amount(row).usable()).unwrap_or(0);
        weights[at] = weights[at].saturating_add(bytes);
    }
    let frames = |stack: &u32| heap.stacks[*stack as usize].iter().rev().copied().collect();
    let samples: Vec<Vec<u32>> = stacks.values().iter().map(frames).collect();
    let name = match class {
        None => format!("{} bytes", heap.amount_name()),
        Some(class) => format!("{} bytes", class.name()),
    };
    let end_value = weights.iter().fold(0, |sum: u64, weight| sum.saturating_add(*weight));
    WireProfile {
        kind: "sampled",
        name,
        unit: "bytes",
        start_value: 0,
        end_value,
        samples,
        weights,
    }
}
