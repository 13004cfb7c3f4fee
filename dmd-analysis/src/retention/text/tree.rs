//! The tree of retained subtrees, and groups, one line each.

use std::io::{self, Write};

use super::columns::{Columns, Own, write_heading};
use super::words::count;
use crate::analysis::number::commas;
use crate::retention::Retention;
use crate::retention::groups::RetainedGroup;
use crate::retention::roots::HandleCount;
use crate::retention::tree::{RetainedName, RetainedNode};

/// Writes the tree of the largest retained subtrees.
///
/// # Errors
///
/// If writing fails.
pub fn write_tree(
    retention: &Retention<'_>,
    tree: &RetainedNode,
    out: &mut dyn Write,
) -> io::Result<()> {
    write_heading(retention, out)?;
    let columns = Columns::new(retention);
    columns.write_names("blocks", out)?;
    let mut pending: Vec<(usize, &RetainedNode)> =
        tree.children.iter().rev().map(|child| (0, child)).collect();
    while let Some((depth, node)) = pending.pop() {
        let is_of_blocks = matches!(node.name, RetainedName::Blocks { .. });
        let own = is_of_blocks.then_some(Own { bytes: node.own, blocks: node.blocks });
        columns.write(
            node.bytes,
            own,
            &format!("{:1$}{2}", "", 2 * depth, name(&node.name)),
            out,
        )?;
        pending.extend(node.children.iter().rev().map(|child| (depth + 1, child)));
    }
    Ok(())
}

/// Writes groups of blocks with what each retains.
///
/// # Errors
///
/// If writing fails.
pub fn write_groups(
    retention: &Retention<'_>,
    (groups, count): &(Vec<RetainedGroup>, usize),
    out: &mut dyn Write,
) -> io::Result<()> {
    write_heading(retention, out)?;
    let columns = Columns::new(retention);
    columns.write_names("blocks", out)?;
    for group in groups {
        let own = Own { bytes: group.own, blocks: group.blocks };
        columns.write(group.retained, Some(own), &group.name, out)?;
    }
    match count - groups.len() {
        0 => Ok(()),
        more => writeln!(out, "{:>1$} … and {2} more", "", columns.bytes, commas(more as i128)),
    }
}

fn name(name: &RetainedName) -> String {
    match name {
        RetainedName::Heap => "(all)".to_owned(),
        RetainedName::Static(name) => format!("static {name}"),
        RetainedName::Outside(name) => name.clone(),
        RetainedName::External(root) => root.describe(),
        RetainedName::Shared => "held by several, and by none alone".to_owned(),
        RetainedName::Cycles { count: cycles, handles: HandleCount::Leaked } => {
            count(*cycles, "leaked cycle")
        }
        RetainedName::Cycles { count: cycles, .. } => {
            format!("{} that nothing outside points at", count(*cycles, "cycle"))
        }
        RetainedName::Blocks { block_type, site, address } => {
            let address = address.map_or_else(String::new, |at| format!("0x{at:x}: "));
            // The frame already names the function that allocated a block of unknown type.
            let block_type = match site {
                Some(_) => block_type.split(", allocated in").next().unwrap_or_default(),
                None => block_type,
            };
            let site = site.as_ref().map_or_else(String::new, |site| format!(", {site}"));
            format!("{address}{block_type}{site}")
        }
        RetainedName::Other(number) => format!("<other>: {}", commas((*number).into())),
    }
}
