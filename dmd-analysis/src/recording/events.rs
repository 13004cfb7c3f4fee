//! Reads the lines and packed events of a recording one after the other, even of one that was cut
//! off because its program was killed.

use std::io::{self, BufRead, Read};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::packed::{Defect, Event, Unpacked, checked_weight};
use super::{Cycle, Mark, Point, RecordingError};

/// The first line.
#[derive(Deserialize)]
pub(super) struct WireHeader {
    pub(super) program: Option<String>,
    pub(super) pid: u32,
    #[serde(rename = "startedMs")]
    pub(super) started_ms: u64,
    #[serde(rename = "sampleBytes")]
    pub(super) sample_bytes: Option<u64>,
    #[serde(default)]
    pub(super) lossy: bool,
    #[serde(default, rename = "freeStacks")]
    pub(super) free_stacks: bool,
    #[serde(default, rename = "everyBlock")]
    pub(super) every_block: bool,
}

#[derive(Deserialize)]
struct WireEnd {
    lost: u64,
}

/// A mark: its kind, the time since the line before, its text, and the cycle that ended then.
#[derive(Deserialize)]
struct WireMark(IgnoredAny, u64, String, #[serde(default)] Option<WireCycle>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCycle {
    reason: String,
    nonincremental_reason: Option<String>,
    /// Start and end of each slice, in microseconds before the mark.
    slices_us: Vec<[u64; 2]>,
}

impl WireCycle {
    fn ended_at(self, time: u64) -> Cycle {
        let slices = self.slices_us.iter().map(|slice| {
            let [start, end] = slice.map(|before| time.saturating_sub(before));
            start..end.max(start)
        });
        Cycle {
            reason: self.reason,
            nonincremental_reason: self.nonincremental_reason,
            slices: slices.collect(),
        }
    }
}

/// The most bytes of a line: a stack of half a million frames.
const LONGEST_LINE: u64 = 16 << 20;

/// The most bytes of packed events in one piece.
const LARGEST_PIECE: u64 = 64 << 20;

/// A part of a recording.
pub(super) enum Part<'l> {
    /// A block was allocated or freed.
    Event(Event),
    /// A block from before the recording was freed. It had so many usable bytes.
    Older(u64),
    /// The exact sums of this time.
    Sums(Point),
    Mark(Mark),
    /// A line that has no time, for [`parse`]: a site, a thread and others.
    Table(&'l [u8]),
    /// The end, and the number of events that were lost.
    End(u64),
}

/// A recording, whose header has been read.
pub(super) struct Events<'r> {
    pub(super) version: u64,
    pub(super) header: WireHeader,
    input: Box<dyn BufRead + 'r>,
}

impl<'r> Events<'r> {
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// If the input cannot be read or is no recording of a known version.
    pub(super) fn open(mut input: Box<dyn BufRead + 'r>) -> Result<Self, RecordingError> {
        let mut line = Vec::new();
        (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(RecordingError::Io)?;
        let header: Value =
            serde_json::from_slice(&line).map_err(|_| RecordingError::NotARecording)?;
        let version = match header.get("recording").and_then(Value::as_u64) {
            None => return Err(RecordingError::NotARecording),
            Some(version @ (1 | 2)) => version,
            Some(version) => return Err(RecordingError::Version(version)),
        };
        let header = serde_json::from_value(header)
            .map_err(|error| RecordingError::Line { number: 1, problem: error.to_string() })?;
        Ok(Self { version, header, input })
    }

    /// Calls `each` with all parts in their order, and their times in microseconds since the
    /// beginning. Returns the last time.
    ///
    /// # Errors
    ///
    /// If the input cannot be read, or is damaged before its end.
    pub(super) fn each(
        mut self,
        each: impl FnMut(u64, Part<'_>) -> Result<(), String>,
    ) -> Result<u64, RecordingError> {
        let mut reading = Reading { time: 0, unpacked: Unpacked::default(), each };
        let mut line = Vec::new();
        for number in 2.. {
            line.clear();
            match (&mut self.input).take(LONGEST_LINE).read_until(b'\n', &mut line) {
                Ok(0) => break,
                Ok(_) if line.ends_with(b"\n") => {}
                Ok(length) if length as u64 == LONGEST_LINE => {
                    let problem = format!("it has more than {LONGEST_LINE} bytes");
                    return Err(RecordingError::Line { number, problem });
                }
                // The last line is cut off, because the program was killed.
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(RecordingError::Io(error)),
            }
            let in_line = |problem| RecordingError::Line { number, problem };
            let Some(length) = packed_length(&line).map_err(in_line)? else {
                reading.line(&line).map_err(in_line)?;
                continue;
            };
            line.clear();
            let is_cut = match (&mut self.input).take(length).read_to_end(&mut line) {
                Ok(read) => (read as u64) < length,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => true,
                Err(error) => return Err(RecordingError::Io(error)),
            };
            match reading.packed(&line) {
                // The rest was not written, because the program was killed.
                Ok(()) | Err(Defect::Cut) if is_cut => break,
                Ok(()) => {}
                Err(Defect::Cut) => return Err(in_line("its last event is cut off".to_owned())),
                Err(Defect::Wrong(problem)) => return Err(in_line(problem)),
            }
        }
        Ok(reading.time)
    }
}

/// Returns the number of bytes that follow a line of packed events; `None` if it is another line.
fn packed_length(line: &[u8]) -> Result<Option<u64>, String> {
    if !line.starts_with(b"[\"packed\",") {
        return Ok(None);
    }
    let (_, length): (String, u64) = parse(line)?;
    if length > LARGEST_PIECE {
        return Err(format!("{length} bytes of events in one piece, above {LARGEST_PIECE}"));
    }
    Ok(Some(length))
}

struct Reading<F> {
    time: u64,
    unpacked: Unpacked,
    each: F,
}

impl<F: FnMut(u64, Part<'_>) -> Result<(), String>> Reading<F> {
    fn line(&mut self, line: &[u8]) -> Result<(), String> {
        if line.starts_with(b"{") {
            let end: WireEnd = parse(line)?;
            return self.part(0, Part::End(end.lost));
        }
        match line.get(1..4) {
            Some(b"\"+\"") => self.allocated(line),
            Some(b"\"-\"") => {
                let (_, since, address, thread): (String, u64, u64, u32) = parse(line)?;
                self.part(
                    since,
                    Part::Event(Event::Freed { address, thread, usable: None, site: 0 }),
                )
            }
            Some(b"\"=\"") => self.sums(line),
            Some(b"\"!\"") => {
                let WireMark(IgnoredAny, since, text, cycle) = parse(line)?;
                let time = self.time.saturating_add(since);
                let cycle = cycle.map(|cycle| cycle.ended_at(time));
                self.part(since, Part::Mark(Mark { time, text, cycle }))
            }
            _ if line.starts_with(b"[\"older\",") => {
                let (_, since, usable): (String, u64, u64) = parse(line)?;
                self.part(since, Part::Older(usable))
            }
            _ => self.part(0, Part::Table(line)),
        }
    }

    /// Advances the time. The numbers of a damaged file may add up to any.
    fn part(&mut self, since: u64, part: Part<'_>) -> Result<(), String> {
        self.time = self.time.saturating_add(since);
        (self.each)(self.time, part)
    }

    fn packed(&mut self, bytes: &[u8]) -> Result<(), Defect> {
        let mut unpacked = std::mem::take(&mut self.unpacked);
        let read = unpacked.read(bytes, |since, event| self.part(since, Part::Event(event)));
        self.unpacked = unpacked;
        read
    }

    /// Reads a line of version 1: a block was allocated.
    fn allocated(&mut self, line: &[u8]) -> Result<(), String> {
        let fields: Vec<Value> = parse(line)?;
        let number = |place: usize| {
            fields
                .get(place)
                .and_then(Value::as_u64)
                .ok_or_else(|| format!("no number in field {place}"))
        };
        let event = Event::Allocated {
            site: u32::try_from(number(2)?).map_err(|error| error.to_string())?,
            address: number(3)?,
            requested: number(4)?,
            usable: number(5)?,
            weight: fields.get(6).map_or(Ok(1.0), |weight| checked_weight(weight.as_f64()))?,
        };
        self.part(number(1)?, Part::Event(event))
    }

    fn sums(&mut self, line: &[u8]) -> Result<(), String> {
        let (_, since, allocated_bytes, allocations, freed_bytes, frees, resident): (
            String,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
        ) = parse(line)?;
        // Sums and differences of smaller numbers fit.
        if allocated_bytes.max(allocations).max(freed_bytes).max(frees).max(resident) >> 62 != 0 {
            return Err("a sum of 2^62 or more".to_owned());
        }
        let time = self.time.saturating_add(since);
        let point = Point { time, allocated_bytes, allocations, freed_bytes, frees, resident };
        self.part(since, Part::Sums(point))
    }
}

/// Parses a line.
pub(super) fn parse<'l, T: Deserialize<'l>>(line: &'l [u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| error.to_string())
}
