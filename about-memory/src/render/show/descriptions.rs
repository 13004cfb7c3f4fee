//! Writes every path with the description of its report, which Firefox shows as a tooltip.

use crate::report::numbers;
use crate::report::page::Page;
use crate::report::tree::Tree;
use std::io::{self, Write};

/// Writes the paths of all reports, process by process, each with its amount and description.
///
/// # Errors
/// The text cannot be written.
pub fn write(page: &Page<'_>, out: &mut dyn Write) -> io::Result<()> {
    page.processes(|process| {
        writeln!(out, "{}\n", process.name)?;
        for tree in process.explicit.iter().chain(&process.trees).chain(&process.flats) {
            for (path, item) in paths(tree) {
                let item_description = tree.description(process.report_tree, item);
                let amount =
                    numbers::amount(&tree.items[item].amount, tree.unit, page.settings.bytes());
                writeln!(out, "{path} = {amount}")?;
                for line in item_description.lines() {
                    writeln!(out, "    {}", line.trim())?;
                }
            }
        }
        writeln!(out)
    })?;
    Ok(())
}

/// Returns the measurements of a tree with their full paths, in the order of drawing.
fn paths(tree: &Tree) -> Vec<(String, usize)> {
    let mut paths = Vec::new();
    let mut segments: Vec<String> = Vec::new();
    for step in tree.drawing_order() {
        segments.truncate(step.depth);
        let item = &tree.items[step.item];
        segments.push(item.shown_name().into_owned());
        if item.children.is_empty() {
            paths.push((segments.join("/"), step.item));
        }
    }
    paths
}
