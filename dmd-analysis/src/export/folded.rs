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
/// `[u8: 4]`. A number at its end follows a no-break space: after a space, readers of the format
/// take the number for a second amount.
pub(super) fn name(function: &str) -> String {
    let name = function.replace("; ", ": ").replace(';', ":").replace(['\n', '\r'], " ");
    match name.rsplit_once(' ') {
        Some((start, end)) if end.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => {
            format!("{start}\u{a0}{end}")
        }
        _ => name,
    }
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
            ("page 7", "page\u{a0}7"),
            ("took 1.5", "took\u{a0}1.5"),
            ("page v7", "page v7"),
        ] {
            assert_eq!(name(function), expected);
        }
    }
}
