//! Writes a log of single allocations in the format of a dump, one record for each, in their order.

use std::io::{self, Write};

use serde_json::json;

use super::blocks::write_slop_and_site;
use super::extension::{module_fields, thread_fields};
use super::keys::Keys;
use super::tables::{put, write_frames, write_stacks};
use crate::collect::findings::threads;
use crate::mem::sys;
use crate::observe::Allocation;

/// Writes the allocations.
///
/// # Errors
///
/// If `out` fails.
pub(crate) fn write_log(entries: &[Allocation], out: &mut impl Write) -> io::Result<()> {
    let mut keys = Keys::new();
    out.write_all(
        b"{\"version\":5,\n\"invocation\":{\"dmdEnvVar\":null,\"mode\":\"live\"},\n\"blockList\":[",
    )?;
    let mut separator = "\n";
    for entry in entries {
        write!(
            out,
            "{separator}{{\"req\":{},\"addr\":\"{:x}\"",
            entry.requested(),
            entry.address()
        )?;
        separator = ",\n";
        write_slop_and_site(entry.usable() - entry.requested(), entry.site, &mut keys, out)?;
        let weight = entry.weight();
        if weight > 1.0 {
            write!(out, ",\"weight\":{weight}")?;
        }
        out.write_all(b"}")?;
    }
    out.write_all(b"],\n\"memreport\":")?;
    let modules = sys::modules();
    let extension = json!({
        "version": 1,
        "needs": [],
        "program": std::env::current_exe().map(|path| path.to_string_lossy().into_owned()).ok(),
        "pid": std::process::id(),
        "reason": "allocations",
        "modules": module_fields(&modules),
        "threads": thread_fields(&threads()),
        "scopes": memreport::__private::all_scopes(),
    });
    put(out, &extension)?;
    out.write_all(b",\n\"traceTable\":{")?;
    write_stacks(&mut keys, out)?;
    out.write_all(b"},\n\"frameTable\":{")?;
    write_frames(&modules, &keys, out)?;
    out.write_all(b"}}\n")
}
