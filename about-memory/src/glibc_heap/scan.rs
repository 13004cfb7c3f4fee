//! Writes a copied heap as a dump with the contents of all blocks, as DMD's mode `scan` does.
//!
//! The format is described in the guide's `reference/formats.md`. Of the blocks, only addresses,
//! sizes and words are known; what refers to them from outside are modules' data, stacks,
//! registers and other memory.

use std::io::{self, Write};

use serde_json::{Value, json};

use memreport_analysis::read::StaticPlace;

use super::image::{Image, Root};
use super::threads::{Frame, ThreadState};
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
    let mut dump = roots(image, blocks);
    let ours = &mut dump["memreport"];
    ours["needs"] = json!(["scannedBlocks"]);
    ours["scannedBlocks"] = blocks.len().into();
    ours["program"] = json!(process.program);
    ours["pid"] = json!(process.pid);
    ours["mode"] = "scan".into();
    ours["reason"] = "from outside".into();
    ours["allRoots"] = (image.notes.is_empty() && heap.notes.is_empty()).into();
    ours["heapAllocated"] = heap.used.bytes.into();
    ours["notes"] = image.notes.iter().chain(&heap.notes).map(|note| json!(note)).collect();
    ours["modules"] = modules(image).into();
    dump["blockList"] = json!([{ "req": 0 }]);
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

/// Returns a dump without blocks: the words outside of these blocks that lead into them, the
/// threads and their frames.
pub(crate) fn roots(image: &Image, blocks: &[Block]) -> Value {
    let ours = json!({
        "version": 1,
        "statics": references(image, blocks),
        "threads": threads(image),
        "frames": image.frames.iter().map(frame).collect::<Vec<Value>>(),
    });
    json!({
        "version": 5,
        "invocation": { "dmdEnvVar": null, "mode": "scan" },
        "blockList": [],
        "memreport": ours,
        "traceTable": {},
        "frameTable": {},
    })
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

/// Returns the words outside the heap that lead into blocks, or are pointers of threads.
fn references(image: &Image, blocks: &[Block]) -> Vec<Value> {
    let mut found = Vec::new();
    // A handle of a thread holds it, as an address holds a block.
    let is_thread = |word: u64| image.thread_pointers.contains(&word);
    for (root, bytes) in &image.roots {
        for (offset, word) in (0..).step_by(8).zip(bytes.chunks_exact(8)) {
            let to = u64::from_le_bytes(word.try_into().unwrap_or_default());
            let place = root.range.start + offset as u64;
            // A heap of another allocator is among the memory of no known use.
            let is_reference = is_inside(blocks, to) || is_thread(to);
            if is_reference && !is_inside(blocks, place) {
                let mut fields = reference(root, place, to);
                if root.name.as_deref() != Some(StaticPlace::OTHER_MEMORY) {
                    fields["around"] = around(bytes, offset).into();
                }
                found.push(fields);
            }
        }
    }
    for thread in &image.threads {
        let root = Root::named(&format!("registers of thread {}", thread.number), 0..0);
        let leading = (0..).zip(thread.registers).filter(|(_, to)| is_inside(blocks, *to));
        found.extend(leading.map(|(number, to)| reference(&root, number, to)));
    }
    found
}

fn threads(image: &Image) -> Vec<Value> {
    let thread = |(id, thread): (u32, &ThreadState)| {
        let pointer = format!("{:x}", thread.thread_pointer);
        json!({ "id": id, "tid": thread.number, "name": thread.name, "pointer": pointer })
    };
    (0..).zip(&image.threads).map(thread).collect()
}

fn frame(frame: &Frame) -> Value {
    let Frame { thread, module, offset, range, registers, is_first } = frame;
    let hex = |number: u64| format!("{number:x}");
    let registers = registers
        .known()
        .map(|(number, saved)| json!([number, hex(saved.value), saved.place.map(hex)]));
    json!({
        "thread": thread,
        "module": module,
        "offset": hex(*offset),
        "low": hex(range.start),
        "high": hex(range.end),
        "isFirst": is_first,
        "registers": registers.collect::<Vec<Value>>(),
    })
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
