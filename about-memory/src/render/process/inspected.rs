//! Writes the heap of a process that was examined from outside.

use std::collections::BTreeMap;
use std::io::{self, Write};

use memreport_analysis::analysis::commas;
use serde_json::json;

use crate::glibc_heap::{Heap, Pause, Sum};

/// The heap of a process, and how it was copied.
pub(crate) struct Inspected {
    /// The process or the core file.
    pub(crate) name: String,
    pub(crate) heap: Heap,
    /// The bytes that were copied.
    pub(crate) copied: u64,
    /// The stop of the process; `None` of a core file.
    pub(crate) pause: Option<Pause>,
}

/// The used and free bytes of sizes up to a power of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SizeClass {
    used: Sum,
    free: Sum,
}

impl Inspected {
    /// Returns how long the process was stopped, in milliseconds.
    fn milliseconds(&self) -> Option<f64> {
        self.pause.map(|pause| pause.time.as_secs_f64() * 1000.0)
    }

    /// Returns the bytes of all arenas and mapped blocks.
    fn committed(&self) -> u64 {
        let heap = &self.heap;
        let sums = [
            heap.used.bytes,
            heap.headers,
            heap.cached.bytes,
            heap.fast.bytes,
            heap.free.bytes,
            heap.top,
            heap.bookkeeping,
            heap.unknown,
        ];
        sums.into_iter().fold(0, u64::saturating_add)
    }

    /// Returns the blocks by size: the least power of two that is as large.
    fn by_size(&self) -> BTreeMap<u64, SizeClass> {
        let mut classes: BTreeMap<u64, SizeClass> = BTreeMap::new();
        for block in &self.heap.blocks {
            let class = classes.entry(block.usable.next_power_of_two()).or_default();
            class.used.blocks += 1;
            class.used.bytes += block.usable;
        }
        for size in &self.heap.free_sizes {
            let class = classes.entry(size.next_power_of_two()).or_default();
            class.free.blocks += 1;
            class.free.bytes += size;
        }
        classes
    }
}

/// Writes the line with the sum, and how the process was copied.
fn write_head(inspected: &Inspected, out: &mut dyn Write) -> io::Result<()> {
    let Inspected { name, heap, copied, pause } = inspected;
    let count = |number: u64| commas(number.into());
    write!(
        out,
        "{name}: {} bytes in {} blocks in use; {} arenas",
        count(heap.used.bytes),
        count(heap.used.blocks),
        heap.arenas,
    )?;
    if let Some(milliseconds) = inspected.milliseconds() {
        let copied = count(*copied);
        let how = match pause {
            Some(Pause { is_by_child: true, .. }) => format!("{copied} bytes copied from a child"),
            _ => format!("to copy {copied} bytes"),
        };
        write!(out, " (stopped for {milliseconds:.1} ms, {how})")?;
    }
    writeln!(out, "\n")
}

/// Writes the sums as text.
///
/// # Errors
///
/// Errors of the writer.
pub(crate) fn text(inspected: &Inspected, out: &mut dyn Write) -> io::Result<()> {
    write_head(inspected, out)?;
    let heap = &inspected.heap;
    let count = |number: u64| commas(number.into());
    let of = |sum: Sum, what: &str| format!("in {} {what}", count(sum.blocks));
    let lines = [
        (heap.used.bytes, of(heap.used, "blocks in use")),
        (heap.headers, "in the words before them".to_owned()),
        (heap.cached.bytes, of(heap.cached, "freed blocks in the caches of threads")),
        (heap.fast.bytes, of(heap.fast, "freed blocks in fast bins")),
        (heap.free.bytes, of(heap.free, "free blocks between others")),
        (heap.top, "free at the ends of arenas".to_owned()),
        (heap.bookkeeping, "in the allocator's own structures".to_owned()),
        (heap.unknown, "not found, or damaged".to_owned()),
    ];
    for (index, (bytes, what)) in lines.iter().enumerate() {
        let sign = if index == 0 { ' ' } else { '+' };
        if *bytes > 0 || index == 0 {
            writeln!(out, "{sign} {:>15}  {what}", count(*bytes))?;
        }
    }
    writeln!(
        out,
        "= {:>15}  that glibc has of the operating system",
        count(inspected.committed())
    )?;
    writeln!(
        out,
        "  {:>15}  of these in {} blocks that are mappings of their own",
        count(heap.mapped.bytes),
        count(heap.mapped.blocks)
    )?;
    writeln!(
        out,
        "\n{:>13} {:>15} {:>11} {:>15} {:>11}",
        "size up to", "bytes in use", "blocks", "bytes free", "blocks"
    )?;
    for (size, class) in inspected.by_size() {
        writeln!(
            out,
            "{:>13} {:>15} {:>11} {:>15} {:>11}",
            count(size),
            count(class.used.bytes),
            count(class.used.blocks),
            count(class.free.bytes),
            count(class.free.blocks)
        )?;
    }
    Ok(())
}

/// Writes a line for each block in use.
///
/// # Errors
///
/// Errors of the writer.
pub(crate) fn blocks(inspected: &Inspected, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n{:>16} {:>15}", "block at", "bytes")?;
    for block in &inspected.heap.blocks {
        writeln!(out, "{:>16x} {:>15}", block.address, block.usable)?;
    }
    Ok(())
}

/// Writes the sums as JSON.
///
/// # Errors
///
/// Errors of the writer.
pub(crate) fn json(inspected: &Inspected, out: &mut dyn Write) -> io::Result<()> {
    let Inspected { name, heap, copied, .. } = inspected;
    let sum = |sum: Sum| json!({ "blocks": sum.blocks, "bytes": sum.bytes });
    let sizes: Vec<_> = inspected
        .by_size()
        .into_iter()
        .map(|(size, class)| json!({ "upTo": size, "used": sum(class.used), "free": sum(class.free) }))
        .collect();
    let value = json!({
        "of": name,
        "allocator": "glibc",
        "stoppedMs": inspected.milliseconds(),
        "copiedBytes": copied,
        "arenas": heap.arenas,
        "used": sum(heap.used),
        "headers": heap.headers,
        "cached": sum(heap.cached),
        "fast": sum(heap.fast),
        "free": sum(heap.free),
        "top": heap.top,
        "bookkeeping": heap.bookkeeping,
        "unknown": heap.unknown,
        "committed": inspected.committed(),
        "mapped": sum(heap.mapped),
        "sizes": sizes,
        "notes": heap.notes,
    });
    writeln!(out, "{value}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::glibc_heap::Block;

    #[test]
    fn blocks_are_added_up_by_powers_of_two() {
        let block = |usable| Block { address: 0x1000, usable };
        let heap = Heap {
            blocks: [24, 32, 33, 1000, 1000].map(block).into(),
            free_sizes: vec![64, 48, 1024],
            ..Heap::default()
        };
        let inspected = Inspected { name: "shop".into(), heap, copied: 0, pause: None };
        let sum = |blocks, bytes| Sum { blocks, bytes };
        let class = |used, free| SizeClass { used, free };
        let expected = BTreeMap::from([
            (32, class(sum(2, 56), sum(0, 0))),
            (64, class(sum(1, 33), sum(2, 112))),
            (1024, class(sum(2, 2000), sum(1, 1024))),
        ]);
        assert_eq!(inspected.by_size(), expected);
    }
}
