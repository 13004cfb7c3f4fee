//! The typed tree as JSON.

use std::io::{self, Write};

use memreport_analysis::ownership::{OwnerRow, OwnerTree, RowKind};
use serde_json::{Value, json};

use super::Shown;

/// Writes the tree with all its rows that pass the filter. Bytes are usable bytes.
pub(crate) fn write(tree: &OwnerTree, shown: &Shown<'_>, out: &mut dyn Write) -> io::Result<()> {
    let rows = shown.filtered(&tree.rows);
    let value = json!({
        "bytes": tree.bytes,
        "blocks": tree.blocks,
        "named": tree.named,
        "certain": tree.certain,
        "typed": tree.typed,
        "several": tree.several,
        "untracked": { "bytes": tree.untracked.bytes, "blocks": tree.untracked.blocks },
        "hasTypes": tree.has_types,
        "rows": rows.iter().map(row).collect::<Value>(),
    });
    serde_json::to_writer_pretty(&mut *out, &value)?;
    writeln!(out)
}

fn row(of: &OwnerRow) -> Value {
    json!({
        "name": of.name,
        "is": kind(of.kind),
        "uncertain": of.is_uncertain,
        "bytes": of.bytes,
        "own": of.own,
        "blocks": of.blocks,
        "typed": of.typed,
        "used": of.used,
        "places": of.places,
        "spare": of.spare,
        "compared": of.compared,
        "copies": of.copies,
        "copiedBlocks": of.copied_blocks,
        "children": of.children.iter().map(row).collect::<Value>(),
    })
}

pub(super) fn kind(of: RowKind) -> &'static str {
    match of {
        RowKind::Static => "static",
        RowKind::Memory => "memory",
        RowKind::Several => "several",
        RowKind::Unknown => "unknown",
        RowKind::Leaked => "leaked",
        RowKind::Shared => "shared",
        _ => "blocks",
    }
}
