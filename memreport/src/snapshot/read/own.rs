//! Reads the fields that this crate adds to Firefox's file, under the key `memreport`.

use serde::Deserialize;
use std::collections::BTreeMap;

/// The additional fields of a file. The reports can be shown without them.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// The process that wrote the file. Its own reports name no process.
    pub process: Option<OwnProcess>,
    /// The moment of the program at which the snapshot was taken, in words.
    pub moment: Option<String>,
    /// The time of the snapshot, in milliseconds since 1970 began.
    pub time_ms: Option<u64>,
    /// The name of the program's allocator, such as `jemalloc`.
    pub allocator: Option<String>,
    /// Sentences about busy values, panics of reporters, and incomplete parts.
    pub notes: Vec<String>,
    /// True if the reporters left out private words.
    pub is_anonymized: bool,
    /// The reporters and values that the snapshot misses. With any, it is incomplete.
    pub missed: Vec<OwnMissed>,
    /// The paths of the program's own reporters, at which or below which they report. Viewers keep
    /// them in sight.
    pub reporters: Vec<String>,
    /// The source of block sizes, if the file states it.
    pub sizes: Option<SizeSource>,
    /// Fields that types do not measure, with the reasons.
    pub skipped: Vec<Skipped>,
    /// The last cycles of work on the program's memory, oldest first.
    pub events: Vec<OwnEvent>,
    /// The names of fields of a later version of the format, which were skipped.
    pub unknown: Vec<String>,
}

/// The process that wrote a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnProcess {
    /// The process's name, such as `server`.
    pub name: String,
    /// The process number, if known.
    pub pid: Option<u64>,
    /// The start of the process, in milliseconds since 1970 began. Files of one process may differ
    /// by some hundredths of a second.
    pub start_ms: Option<u64>,
}

/// A cycle of work on the program's memory. See `memreport::MemoryEvent`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct OwnEvent {
    /// The number of the cycle.
    pub number: u64,
    /// The reason for the cycle.
    pub reason: String,
    /// The reason why it was done all at once, if it was.
    pub nonincremental_reason: Option<String>,
    /// Start and end of each slice, in microseconds since 1970 began.
    pub slices_us: Vec<[u64; 2]>,
}

/// A reporter or a value that a snapshot misses. See `memreport::Missed`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct OwnMissed {
    /// The path that is missing or too small, or the reporter's name.
    pub reporter: String,
    /// The reason: `locked`, `running` or `panicked`.
    pub reason: String,
}

/// The source of block sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeSource {
    /// The allocator's size query.
    Allocator,
    /// The layouts of the allocations, without the allocator's rounding.
    Layout,
}

/// A field that its type does not measure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// The type, such as `Index`.
    pub owner: String,
    /// The field, such as `cache`.
    pub field: String,
    /// The reason why it is not measured.
    pub reason: String,
    /// The source file of the type.
    pub file: String,
    /// The line in the file; 0 if unknown.
    pub line: u32,
}

#[derive(Deserialize)]
struct WireOwn {
    #[serde(default)]
    version: u32,
    process: Option<WireProcess>,
    moment: Option<String>,
    #[serde(rename = "timeMs")]
    time_ms: Option<u64>,
    allocator: Option<String>,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default, rename = "anonymized")]
    is_anonymized: bool,
    #[serde(default)]
    missed: Vec<OwnMissed>,
    #[serde(default)]
    reporters: Vec<String>,
    sizes: Option<String>,
    #[serde(default)]
    skipped: Vec<WireSkipped>,
    #[serde(default)]
    events: Vec<OwnEvent>,
    #[serde(flatten)]
    others: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
struct WireProcess {
    name: String,
    pid: Option<u64>,
    #[serde(rename = "startMs")]
    start_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct WireSkipped {
    owner: String,
    field: String,
    reason: String,
    file: String,
    line: u32,
}

impl Own {
    /// Reads the fields. Contents with an unexpected form are listed in `unknown`, and are never an
    /// error.
    pub(super) fn from_value(mut value: serde_json::Value) -> Self {
        whole_numbers(&mut value);
        let wire: WireOwn = match serde_json::from_value(value) {
            Ok(wire) => wire,
            Err(error) => {
                return Own { unknown: vec![format!("memreport ({error})")], ..Own::default() };
            }
        };
        let mut own = Own {
            process: wire.process.map(|WireProcess { name, pid, start_ms }| OwnProcess {
                name,
                pid,
                start_ms,
            }),
            moment: wire.moment,
            time_ms: wire.time_ms,
            allocator: wire.allocator,
            notes: wire.notes,
            is_anonymized: wire.is_anonymized,
            missed: wire.missed,
            reporters: wire.reporters,
            events: wire.events,
            unknown: wire.others.into_keys().collect(),
            ..Own::default()
        };
        if wire.version > 1 {
            own.unknown.push(format!("version {}", wire.version));
        }
        match wire.sizes.as_deref() {
            None => {}
            Some("asked") => own.sizes = Some(SizeSource::Allocator),
            Some("layouts") => own.sizes = Some(SizeSource::Layout),
            Some(other) => own.unknown.push(format!("sizes {other:?}")),
        }
        own.skipped = wire.skipped.into_iter().map(WireSkipped::into_skipped).collect();
        own
    }
}

impl WireSkipped {
    fn into_skipped(self) -> Skipped {
        let WireSkipped { owner, field, reason, file, line } = self;
        Skipped { owner, field, reason, file, line }
    }
}

/// Converts doubles without a fraction into whole numbers, which serde needs for integers.
fn whole_numbers(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Number(number) => {
            // A number printed without fraction or exponent is whole, and fits if it parses.
            if let Some(whole) =
                number.as_f64().and_then(|double| format!("{double}").parse::<u64>().ok())
            {
                *number = whole.into();
            }
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        serde_json::Value::Object(members) => members.values_mut().for_each(whole_numbers),
        _ => {}
    }
}
