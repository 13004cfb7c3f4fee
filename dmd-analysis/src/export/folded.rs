//! Folded stacks, for flame graphs: `main;load 4096`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::heap::{Heap, StackAmounts};

/// Writes a line for each stack, sorted: its functions, the outermost first, and its bytes.
///
/// # Errors
///
/// Returns an error if writing fails.
pub fn write(heap: &Heap, out: &mut dyn Write) -> io::Result<()> {
    for (stack, bytes) in lines(heap) {
        writeln!(out, "{stack} {bytes}")?;
    }
    Ok(())
}

/// Returns the folded stacks and their bytes. Stacks that differ only in lines are one.
pub(super) fn lines(heap: &Heap) -> BTreeMap<String, i128> {
    let names: Vec<String> = heap.frames.iter().map(|frame| name(&frame.function)).collect();
    let mut lines: BTreeMap<String, i128> = BTreeMap::new();
    for StackAmounts { stack, live, allocated } in heap.by_stack() {
        let frames = heap.stacks[stack as usize].iter().rev();
        let names: Vec<&str> = frames.map(|frame| &*names[*frame as usize]).collect();
        *lines.entry(names.join(";")).or_default() += heap.either(live, allocated).usable();
    }
    lines
}

/// Returns the name of a function without semicolons and line breaks, which end frames and stacks:
/// `[u8: 4]`.
pub(super) fn name(function: &str) -> String {
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
