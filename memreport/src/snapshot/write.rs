//! Writes the memory report file.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use super::Snapshot;
use super::files::PrivateFile;
use crate::event::memory_event::MemoryEvent;
use crate::process::age;
use crate::report::missed::Missed;
use crate::report::{Kind, Report, Units};

/// Writes the file under a temporary name, and renames it when it is complete.
pub(super) fn save(snapshot: &Snapshot, reports: &[Report], path: &Path) -> io::Result<()> {
    atomically(path, |out| write(snapshot, reports, out))
}

/// Writes the file's text with these reports.
pub(super) fn write(
    snapshot: &Snapshot,
    reports: &[Report],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut to = Serializer::with_formatter(out, Ascii);
    Ok(WireFile::new(snapshot, reports).serialize(&mut to)?)
}

/// Gzips the output of `write` into `to`, and returns it.
#[cfg(unix)]
pub(super) fn gzipped<W: Write>(
    to: W,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<W> {
    let mut packed = GzEncoder::new(to, Compression::fast());
    write(&mut packed)?;
    packed.finish()
}

/// A JSON formatter that escapes everything but ASCII, because Firefox reads each byte of gzipped
/// text as a character.
struct Ascii;

impl Formatter for Ascii {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        to: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut plain = 0;
        for (at, letter) in fragment.char_indices().filter(|(_, letter)| !letter.is_ascii()) {
            to.write_all(&fragment.as_bytes()[plain..at])?;
            for unit in letter.encode_utf16(&mut [0; 2]) {
                write!(to, "\\u{unit:04x}")?;
            }
            plain = at + letter.len_utf8();
        }
        to.write_all(&fragment.as_bytes()[plain..])
    }
}

/// Writes the file at `path` so that it is never visible half written, and private to its user.
/// Gzipped if the name ends in `.gz`.
///
/// # Errors
///
/// Returns errors of the file. The message names it.
pub fn atomically(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let gzipped = path.extension().is_some_and(|ending| ending == "gz");
    let result = PrivateFile::create(path).and_then(|mut file| {
        write_all(&mut file, gzipped, write)?;
        file.keep()
    });
    result
        .map(drop)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

fn write_all(
    file: &mut PrivateFile,
    gzipped: bool,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = BufWriter::new(file);
    if gzipped {
        let mut packed = GzEncoder::new(file, Compression::fast());
        write(&mut packed)?;
        packed.finish()?.flush()
    } else {
        write(&mut file)?;
        file.flush()
    }
}

#[derive(Serialize)]
struct WireFile<'s> {
    version: u32,
    #[serde(rename = "hasMozMallocUsableSize")]
    has_usable_sizes: bool,
    /// Additional fields, which Firefox ignores.
    memreport: WireOwn<'s>,
    reports: WireReports<'s>,
}

#[derive(Serialize)]
struct WireOwn<'s> {
    version: u32,
    process: WireProcess,
    moment: &'s str,
    /// Milliseconds since 1970 began.
    #[serde(rename = "timeMs")]
    time: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    allocator: Option<&'static str>,
    sizes: &'static str,
    notes: &'s [String],
    #[serde(rename = "anonymized", skip_serializing_if = "is_false")]
    is_anonymized: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missed: Vec<WireMissed<'s>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    reporters: &'s [String],
    skipped: Vec<WireSkipped<'s>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<WireEvent<'s>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[derive(Serialize)]
struct WireMissed<'s> {
    reporter: &'s str,
    reason: &'static str,
}

impl<'s> WireMissed<'s> {
    fn new(missed: &'s Missed) -> Self {
        WireMissed { reporter: &missed.reporter, reason: missed.reason.word() }
    }
}

#[derive(Serialize)]
struct WireEvent<'s> {
    number: u64,
    reason: &'s str,
    #[serde(rename = "nonincrementalReason", skip_serializing_if = "Option::is_none")]
    nonincremental_reason: Option<&'s str>,
    /// Start and end of each slice in microseconds since 1970 began.
    #[serde(rename = "slicesUs")]
    slices: Vec<[u64; 2]>,
}

#[derive(Serialize)]
struct WireProcess {
    name: String,
    pid: u32,
    /// The start of the process, in the unit of `timeMs`.
    #[serde(rename = "startMs", skip_serializing_if = "Option::is_none")]
    start: Option<u64>,
}

#[derive(Serialize)]
struct WireSkipped<'s> {
    owner: &'s str,
    module: &'s str,
    field: &'s str,
    reason: &'s str,
    file: &'s str,
    line: u32,
}

impl<'s> WireFile<'s> {
    fn new(snapshot: &'s Snapshot, reports: &'s [Report]) -> Self {
        let process = WireProcess { name: own_name(), pid: std::process::id(), start: start() };
        let reports =
            WireReports { process: format!("{} (pid {})", process.name, process.pid), reports };
        let skipped = snapshot.skipped.iter();
        let memreport = WireOwn {
            version: 1,
            process,
            moment: &snapshot.moment,
            time: since_1970(snapshot.time),
            allocator: snapshot.allocator,
            // "asked" is the file format's word: the allocator stated the sizes.
            sizes: if snapshot.has_usable_sizes { "asked" } else { "layouts" },
            notes: &snapshot.notes,
            is_anonymized: snapshot.is_anonymized,
            missed: snapshot.missed.iter().map(WireMissed::new).collect(),
            reporters: &snapshot.reporters,
            skipped: skipped
                .map(|field| WireSkipped {
                    owner: field.owner,
                    module: field.module,
                    field: field.field,
                    reason: field.reason,
                    file: field.file,
                    line: field.line,
                })
                .collect(),
            events: events(&snapshot.events),
        };
        WireFile { version: 1, has_usable_sizes: snapshot.has_usable_sizes, memreport, reports }
    }
}

fn events(events: &[MemoryEvent]) -> Vec<WireEvent<'_>> {
    let (now, instant) = (SystemTime::now(), Instant::now());
    let microseconds = |time: Instant| {
        let time = now.checked_sub(instant.saturating_duration_since(time)).unwrap_or(UNIX_EPOCH);
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    };
    let mut all = Vec::new();
    for MemoryEvent { number, reason, nonincremental_reason, slices } in events {
        let slices = slices.iter();
        all.push(WireEvent {
            number: *number,
            reason,
            nonincremental_reason: nonincremental_reason.as_deref(),
            slices: slices.map(|at| [at.start, at.end].map(microseconds)).collect(),
        });
    }
    all
}

struct WireReports<'s> {
    /// The name of the process that took the snapshot.
    process: String,
    reports: &'s [Report],
}

impl Serialize for WireReports<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.reports.iter().map(|report| WireReport {
            process: if report.process.is_empty() { &self.process } else { &report.process },
            path: &report.path,
            kind: match report.kind {
                Kind::NonHeap => 0,
                Kind::Heap => 1,
                Kind::Other => 2,
            },
            units: match report.units {
                Units::Bytes => 0,
                Units::Count => 1,
                Units::CountCumulative => 2,
                Units::Percentage => 3,
            },
            amount: report.amount,
            description: &report.description,
        }))
    }
}

#[derive(Serialize)]
struct WireReport<'s> {
    process: &'s str,
    path: &'s str,
    kind: u8,
    units: u8,
    amount: i64,
    description: &'s str,
}

/// Returns the start of this process in milliseconds since 1970 began.
fn start() -> Option<u64> {
    Some(since_1970(SystemTime::now()).saturating_sub(age()?))
}

fn since_1970(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the name of the running program, as in `ps`.
pub(crate) fn own_name() -> String {
    let path = std::env::current_exe().ok();
    let name =
        path.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_written_in_ascii() {
        let table = [
            ("plain", r#""plain""#),
            ("é", r#""\u00e9""#),
            ("a é b", r#""a \u00e9 b""#),
            ("𝄞", r#""\ud834\udd1e""#),
            ("\"\\\t", r#""\"\\\t""#),
        ];
        for (text, expected) in table {
            let mut written = Vec::new();
            text.serialize(&mut Serializer::with_formatter(&mut written, Ascii)).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), expected);
            assert_eq!(serde_json::from_str::<String>(expected).unwrap(), text);
        }
    }
}
