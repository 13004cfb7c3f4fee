//! What this project adds to Firefox's file, under the key `memreport`, which Firefox passes over.

use serde::Deserialize;
use std::collections::BTreeMap;

/// What a file of ours says beside its reports. Nothing of it is needed to show them.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// The process that wrote the file, whose reports name none.
    pub process: Option<OwnProcess>,
    /// At which moment of the program it was taken, in words.
    pub moment: Option<String>,
    /// When it was taken, in milliseconds since 1970 began.
    pub time_ms: Option<u64>,
    /// What the program's allocator is called, as `jemalloc`.
    pub allocator: Option<String>,
    /// Sentences about the collection: who was busy, who panicked, what is incomplete.
    pub notes: Vec<String>,
    /// Where the sizes of blocks come from, if the file says.
    pub sizes: Option<Sizes>,
    /// Fields that are left out of the measurements, with the reason.
    pub skipped: Vec<Skipped>,
    /// The last cycles of work on the program's memory, the oldest first.
    pub events: Vec<OwnEvent>,
    /// What a later version of the format may hold: read past, but known to be there.
    pub unknown: Vec<String>,
}

/// The process that wrote a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnProcess {
    /// Its name, as `server`.
    pub name: String,
    /// Its number, where known.
    pub pid: Option<u64>,
    /// When it began, in milliseconds since 1970 began. Of the same process it may differ by some hundredths of a second
    /// from file to file.
    pub start_ms: Option<u64>,
}

/// A cycle of work on the program's memory: see `memreport::MemoryEvent`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct OwnEvent {
    /// Its number.
    pub number: u64,
    /// Why it happened.
    pub reason: String,
    /// Why it was done all at once, where it was.
    pub nonincremental_reason: Option<String>,
    /// Start and end of each slice, in microseconds since 1970 began.
    pub slices_us: Vec<[u64; 2]>,
}

/// Where the sizes of blocks come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// The allocator was asked for each block.
    Asked,
    /// They are what was asked of the allocator, without what it added.
    Layouts,
}

/// A field that its type leaves out of its measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// The type, as `Index`.
    pub owner: String,
    /// The field, as `cache`.
    pub field: String,
    /// Why it is left out.
    pub reason: String,
    /// The source file of the type.
    pub file: String,
    /// The line in it; 0 where unknown.
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
    /// Content that is not understood is named in `unknown`, and never stops anybody from seeing the reports.
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
            events: wire.events,
            unknown: wire.others.into_keys().collect(),
            ..Own::default()
        };
        if wire.version > 1 {
            own.unknown.push(format!("version {}", wire.version));
        }
        match wire.sizes.as_deref() {
            None => {}
            Some("asked") => own.sizes = Some(Sizes::Asked),
            Some("layouts") => own.sizes = Some(Sizes::Layouts),
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

/// All numbers were read as doubles; serde wants whole ones where it fills integers.
fn whole_numbers(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Number(number) => {
            // What is printed without a fraction or exponent is whole, and fits if it parses.
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
