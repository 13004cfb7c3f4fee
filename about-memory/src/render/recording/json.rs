//! Writes the summary of a recording as JSON.

use std::io::{self, Write};

use memreport_analysis::recording::{Estimate, Point, Recording, Sums};
use serde_json::{Value, json};

/// Writes the summary: times in microseconds since the start, sizes in bytes.
pub(crate) fn write(recording: &Recording, sums: &Sums, out: &mut dyn Write) -> io::Result<()> {
    let marks = recording.marks.iter();
    let answer = json!({
        "program": recording.program,
        "pid": recording.pid,
        "startedMs": recording.started_ms,
        "length": recording.length,
        "sampleBytes": recording.sample_bytes,
        "lossy": recording.is_lossy,
        "lost": recording.lost,
        "isWhole": recording.is_whole,
        "first": recording.ends().map(|(first, _)| point(&first)),
        "peak": recording.peak().map(|peak| {
            json!({ "time": peak.time, "live": peak.bytes, "isExact": peak.is_exact })
        }),
        "last": recording.ends().map(|(_, last)| point(&last)),
        "allocated": estimate(&sums.allocated),
        "atPeak": estimate(&sums.at_peak),
        "retained": estimate(&sums.retained),
        "temporary": estimate(&sums.temporary),
        "lifetimes": sums.lifetimes
            .iter()
            .map(|class| json!({ "from": class.from, "to": class.to, "sum": estimate(&class.sum) }))
            .collect::<Vec<_>>(),
        "marks": marks
            .map(|mark| json!({ "time": mark.time, "words": mark.text }))
            .collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &answer)?;
    writeln!(out)
}

/// Rounds bytes. Blocks are estimates.
#[expect(clippy::cast_possible_truncation, reason = "far below 2^53")]
fn estimate(sum: &Estimate) -> Value {
    json!({
        "bytes": sum.bytes.round() as i64,
        "error": sum.error(),
        "blocks": sum.blocks,
    })
}

fn point(point: &Point) -> Value {
    json!({
        "time": point.time,
        "live": point.live_bytes(),
        "allocated": point.allocated_bytes,
        "allocations": point.allocations,
        "freed": point.freed_bytes,
        "frees": point.frees,
        "resident": point.resident,
    })
}
