//! Folded stacks, for flame graphs: "main;load 4096".

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::heap::Heap;

/// Writes a line for each stack, sorted: the functions from the outermost, and bytes.
///
/// # Errors
///
/// If writing fails.
pub fn write(heap: &Heap, out: &mut dyn Write) -> io::Result<()> {
    for (stack, bytes) in lines(heap) {
        writeln!(out, "{stack} {bytes}")?;
    }
    Ok(())
}

/// The stacks as flame graphs have them, and their bytes. Stacks that differ only in lines are one.
pub(super) fn lines(heap: &Heap) -> BTreeMap<String, i128> {
    let names: Vec<String> = heap.frames.iter().map(|frame| name(&frame.function)).collect();
    let mut lines: BTreeMap<String, i128> = BTreeMap::new();
    for (stack, live, allocated) in heap.by_stack() {
        let frames = heap.stacks[stack as usize].iter().rev();
        let names: Vec<&str> = frames.map(|frame| &*names[*frame as usize]).collect();
        *lines.entry(names.join(";")).or_default() += heap.either(live, allocated).usable();
    }
    lines
}

/// A semicolon would end the frame, and a line break the stack: arrays are written `[u8: 4]`, as far as it goes.
fn name(function: &str) -> String {
    function.replace("; ", ": ").replace(';', ":").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn a_name_stays_one_frame() {
        for (function, expected) in [
            ("new<[u8; 4]>", "new<[u8: 4]>"),
            ("a;b", "a:b"),
            ("main", "main"),
            ("<T as A>::f", "<T as A>::f"),
        ] {
            assert_eq!(name(function), expected);
        }
    }
}
