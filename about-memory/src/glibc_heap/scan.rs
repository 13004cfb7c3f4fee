//! Writes a copied heap as a dump with the contents of all blocks, as DMD's mode `scan` does.
//!
//! The format is described in the guide's `reference/formats.md`. Of the blocks, only addresses,
//! sizes and words are known; what refers to them from outside are modules' data, stacks,
//! registers and other memory.

use std::io::{self, Write};

use serde_json::{Value, json};

use memreport_analysis::read::StaticPlace;

use super::image::{Image, Root};
use super::walk::{Block, Heap};

/// The process that a heap is of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    pub(crate) program: Option<String>,
    pub(crate) pid: Option<u32>,
}

/// The byte between the JSON and the blocks.
const END_OF_JSON: u8 = 0;

const WORD: u64 = 8;

/// Writes the dump.
///
/// # Errors
///
/// Errors of the writer.
pub(crate) fn write_scan(
    image: &Image,
    heap: &Heap,
    process: &Process,
    out: &mut impl Write,
) -> io::Result<()> {
    let blocks = &heap.blocks;
    let modules: Vec<Value> = modules(image);
    let ours = json!({
        "version": 1,
        "needs": ["scannedBlocks"],
        "scannedBlocks": blocks.len(),
        "program": process.program,
        "pid": process.pid,
        "mode": "scan",
        "reason": "from outside",
        "allRoots": image.notes.is_empty() && heap.notes.is_empty(),
        "heapAllocated": heap.used.bytes,
        "modules": modules,
        "statics": references(image, blocks),
    });
    let dump = json!({
        "version": 5,
        "invocation": { "dmdEnvVar": null, "mode": "scan" },
        "blockList": [{ "req": 0 }],
        "memreport": ours,
        "traceTable": {},
        "frameTable": {},
    });
    serde_json::to_writer(&mut *out, &dump)?;
    out.write_all(&[END_OF_JSON])?;
    let mut before = 0;
    for Block { address, usable } in blocks {
        let words = image.areas.bytes(*address, usable / WORD * WORD);
        write_number(address - before, out)?;
        write_number(*usable, out)?;
        write_number(0, out)?;
        // The one kind of blocks, and whether the words follow.
        write_number(u64::from(words.is_some()), out)?;
        before = *address;
        out.write_all(words.unwrap_or_default())?;
    }
    Ok(())
}

/// Returns the modules with data.
fn modules(image: &Image) -> Vec<Value> {
    let mut found: Vec<(&str, u64)> = image
        .roots
        .iter()
        .filter(|(root, _)| root.name.is_none())
        .map(|(root, _)| (root.module.as_str(), root.base))
        .collect();
    found.dedup();
    found.iter().map(|(path, base)| json!({ "path": path, "base": format!("{base:x}") })).collect()
}

/// Returns the words outside the heap that lead into blocks.
fn references(image: &Image, blocks: &[Block]) -> Vec<Value> {
    let mut found = Vec::new();
    for (root, bytes) in &image.roots {
        for (offset, word) in (0..).step_by(8).zip(bytes.chunks_exact(8)) {
            let to = u64::from_le_bytes(word.try_into().unwrap_or_default());
            if is_inside(blocks, to) {
                let mut fields = reference(root, root.range.start + offset as u64, to);
                if root.name.is_none() {
                    fields["around"] = around(bytes, offset).into();
                }
                found.push(fields);
            }
        }
    }
    for (name, registers) in &image.registers {
        let root = Root::named(name, 0..0);
        let leading = registers.iter().filter(|to| is_inside(blocks, **to));
        found.extend(leading.map(|to| reference(&root, 0, *to)));
    }
    found
}

fn reference(root: &Root, place: u64, to: u64) -> Value {
    let module = if root.module.is_empty() { StaticPlace::PROCESS } else { &root.module };
    let offset = format!("{:x}", place.wrapping_sub(root.base));
    let mut fields = json!({ "module": module, "offset": offset, "to": format!("{to:x}") });
    if let Some(name) = &root.name {
        fields["name"] = name.as_str().into();
    }
    fields
}

/// Returns the words around the one at an offset: three before, itself, and three behind. Words
/// outside of the bytes are 0.
fn around(bytes: &[u8], at: usize) -> Vec<String> {
    let word = |number: usize| {
        let start = (at + number * 8).checked_sub(3 * 8)?;
        bytes.get(start..)?.first_chunk().copied().map(u64::from_le_bytes)
    };
    (0..7).map(|number| format!("{:x}", word(number).unwrap_or(0))).collect()
}

/// Returns whether an address is in a block.
fn is_inside(blocks: &[Block], address: u64) -> bool {
    let after = blocks.partition_point(|block| block.address <= address);
    after.checked_sub(1).is_some_and(|at| address - blocks[at].address < blocks[at].usable)
}

/// Writes a number in base 128, the lowest digit first. All digits but the last have the high bit.
fn write_number(mut number: u64, out: &mut impl Write) -> io::Result<()> {
    loop {
        let digit = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            return out.write_all(&[digit]);
        }
        out.write_all(&[digit | 0x80])?;
    }
}

#[cfg(test)]
mod tests {
    use super::around;

    #[test]
    fn three_words_before_and_behind_are_around_one() {
        let bytes: Vec<u8> = (1..=10_u64).flat_map(u64::to_le_bytes).collect();
        for (index, expected) in [
            (0, ["0", "0", "0", "1", "2", "3", "4"]),
            (4, ["2", "3", "4", "5", "6", "7", "8"]),
            (9, ["7", "8", "9", "a", "0", "0", "0"]),
        ] {
            assert_eq!(around(&bytes, 8 * index), expected);
        }
    }
}
