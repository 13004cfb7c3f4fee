//! A flame graph as an image that a browser opens, searches and zooms.

use std::io::{self, Write};

use inferno::flamegraph::color::{BasicPalette, Palette};
use inferno::flamegraph::{self, Options};

use super::folded;
use crate::heap::Heap;

/// Writes the image.
///
/// # Errors
///
/// Returns an error if writing fails.
pub fn write(heap: &Heap, out: &mut dyn Write) -> io::Result<()> {
    let lines: Vec<String> = folded::lines(heap)
        .into_iter()
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(stack, bytes)| format!("{stack} {bytes}"))
        .collect();
    let mut options = Options::default();
    options.title = format!("{}: {} bytes", heap.process.name(), heap.amount_name());
    options.count_name = "bytes".to_owned();
    options.colors = Palette::Basic(BasicPalette::Mem);
    // With these, the colours are the same each time.
    options.hash = true;
    options.deterministic = true;
    if lines.is_empty() {
        // The library rejects an empty flame graph.
        options.title.push_str(", none");
        return flamegraph::from_lines(&mut options, ["(no blocks) 1"], out);
    }
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)
}
