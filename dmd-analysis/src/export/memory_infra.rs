//! Chrome's MemoryInfra trace (heaps, version 2), for Catapult's trace viewer.
//!
//! The viewer groups a heap by stack and by type, and compares two dumps of one trace.

mod allocators;
mod maps;

use std::io::{self, Write};

use serde_json::json;

use allocators::Allocators;
use maps::Maps;

use crate::heap::{Heap, Process};

/// Writes the trace: a detailed memory dump for each dump, in this order.
///
/// All have one process in the trace, even dumps of several runs: the viewer compares dumps of one
/// process only.
///
/// # Errors
///
/// Returns an error if writing fails.
pub fn write(heaps: &[Heap], out: &mut dyn Write) -> io::Result<()> {
    let (mut maps, mut allocators) = (Maps::default(), Allocators::default());
    let first = heaps.first().map(|heap| &heap.process);
    let name = first.map_or("(unknown program)", Process::name);
    // To the viewer, process 0 is the kernel.
    let pid = first.map_or(0, |process| process.pid).max(1);
    let mut events = vec![json!({
        "ph": "M", "name": "process_name", "cat": "__metadata", "pid": pid, "tid": 0, "ts": 0,
        "args": { "name": name },
    })];
    let mut time = 0_u64;
    for (number, heap) in heaps.iter().enumerate() {
        // Times ascend, whenever the processes began.
        time = heap.process.uptime_ms.max(time.saturating_add(1));
        let sizes = allocators.sizes(heap);
        let dumps = json!({
            "level_of_detail": "detailed",
            "allocators": sizes.allocators,
            "allocators_graph": sizes.owners,
            "heaps_v2": maps.heaps(heap),
        });
        events.push(json!({
            "ph": "v", "name": "explicitly_triggered", "cat": "disabled-by-default-memory-infra",
            "id": format!("{:x}", number + 1), "pid": pid, "tid": -1,
            "ts": time.saturating_mul(1000), "args": { "dumps": dumps },
        }));
    }
    serde_json::to_writer(&mut *out, &json!({ "traceEvents": events }))?;
    writeln!(out)
}
