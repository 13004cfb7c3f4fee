//! Writes a dump, group by group: the file is never in memory as a whole. The blocks of a scan
//! follow the JSON in binary.
//!
//! The keys of stacks, reports and frames are in the tracker's own pages.

use std::io::{self, Write};

use serde_json::json;

use super::blocks::write_groups;
use super::extension;
use super::keys::Keys;
use super::scanned::Kinds;
use super::tables::{put, write_frames, write_traces};
use crate::collect::Dump;

/// Writes a dump: JSON, and the blocks of a scan behind it.
///
/// # Errors
///
/// If `out` or the file of contents fails.
pub(super) fn write(dump: &Dump, out: &mut dyn Write) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 16, out);
    let out = &mut out;
    let mut keys = Keys::new();
    out.write_all(b"{\"version\":5,\n\"invocation\":")?;
    put(out, &json!({ "dmdEnvVar": dump.variable, "mode": dump.plan.mode.name_in_dumps() }))?;
    out.write_all(b",\n\"blockList\":[")?;
    let (scanned, groups) = (dump.contents.scanned.as_ref(), &dump.contents.groups);
    let kinds = scanned.map(|_| Kinds::of(groups)).transpose()?;
    match &kinds {
        Some(kinds) => kinds.write(dump, &mut keys, out)?,
        None => write_groups(dump, &mut keys, out)?,
    }
    out.write_all(b"],\n\"memreport\":")?;
    put(out, &extension::fields(dump, &mut keys))?;
    out.write_all(b",\n\"traceTable\":{")?;
    write_traces(dump, &mut keys, out)?;
    out.write_all(b"},\n\"frameTable\":{")?;
    write_frames(&dump.modules, &keys, out)?;
    out.write_all(b"}}\n")?;
    if let (Some(kinds), Some(scanned)) = (&kinds, scanned) {
        kinds.write_blocks(scanned, groups, out)?;
    }
    out.flush()
}
