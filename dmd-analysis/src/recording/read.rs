//! Reads the file of a recording, even one that was cut off because its program was killed.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read};
use std::{error, fmt};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::read::Unpacker;

use super::packed::{Defect, Event, Unpacked};
use super::peak::Follower;
use super::{Block, Cycle, Freed, Mark, Module, Point, Recording, Scope, ScopeSpan, Site, Thread};

/// The error for a file that is not a recording.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file cannot be read.
    Io(io::Error),
    /// The first line is not the header of a recording.
    NotARecording,
    /// The recording has this unknown version.
    Version(u64),
    /// A line is malformed.
    Line {
        /// The number of the line, from 1.
        number: usize,
        /// The defect.
        problem: String,
    },
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordingError::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                write!(f, "{error}")
            }
            RecordingError::Io(_) => f.write_str("cannot be read"),
            RecordingError::NotARecording => {
                f.write_str("no recording; `about-memory record` and `dmd::record` write those")
            }
            RecordingError::Version(version) => {
                write!(f, "recording of version {version}; 1 and 2 are known")
            }
            RecordingError::Line { number, problem } => write!(f, "line {number}: {problem}"),
        }
    }
}

impl error::Error for RecordingError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            RecordingError::Io(error) => Some(error),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
struct WireHeader {
    program: Option<String>,
    pid: u32,
    #[serde(rename = "startedMs")]
    started_ms: u64,
    #[serde(rename = "sampleBytes")]
    sample_bytes: Option<u64>,
    #[serde(default)]
    lossy: bool,
    #[serde(default, rename = "freeStacks")]
    free_stacks: bool,
    #[serde(default, rename = "everyBlock")]
    every_block: bool,
}

#[derive(Deserialize)]
struct WireEnd {
    lost: u64,
}

/// The most bytes of a line: a stack of half a million frames.
const LONGEST_LINE: u64 = 16 << 20;

/// The most bytes of packed events in one piece.
const LARGEST_PIECE: u64 = 64 << 20;

/// Reads a recording that may be gzipped.
///
/// # Errors
///
/// If the input is not a recording, or if it is damaged before its end.
pub fn read(input: impl Read) -> Result<Recording, RecordingError> {
    let mut input = BufReader::new(input);
    let is_gzip = input.fill_buf().map_err(RecordingError::Io)?.starts_with(&[0x1f, 0x8b]);
    if is_gzip {
        read_lines(BufReader::with_capacity(1 << 16, Unpacker::new(input)))
    } else {
        read_lines(input)
    }
}

/// Returns whether a file is a recording, from the beginning of its text. The first line is enough.
#[must_use]
pub fn is_recording(text: &[u8]) -> bool {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let header = serde_json::from_slice::<Value>(line).ok();
    header.is_some_and(|header| header.get("recording").is_some())
}

fn read_lines(mut input: impl BufRead) -> Result<Recording, RecordingError> {
    let mut line = Vec::new();
    (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(RecordingError::Io)?;
    let header: Value = serde_json::from_slice(&line).map_err(|_| RecordingError::NotARecording)?;
    match header.get("recording").and_then(Value::as_u64) {
        None => return Err(RecordingError::NotARecording),
        Some(1 | 2) => {}
        Some(version) => return Err(RecordingError::Version(version)),
    }
    let header: WireHeader = serde_json::from_value(header)
        .map_err(|error| RecordingError::Line { number: 1, problem: error.to_string() })?;
    let mut reading = Reading::new(header);
    for number in 2.. {
        line.clear();
        match (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut line) {
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
        let is_cut = match (&mut input).take(length).read_to_end(&mut line) {
            Ok(read) => (read as u64) < length,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => true,
            Err(error) => return Err(RecordingError::Io(error)),
        };
        match reading.packed(&line) {
            // The rest was not written, because the program was killed.
            Ok(()) | Err(Defect::Cut) if is_cut => break,
            Ok(()) => {}
            Err(Defect::Cut) => return Err(in_line("its last event is cut off".to_owned())),
            Err(Defect::Wrong(problem)) => return Err(in_line(problem.to_owned())),
        }
    }
    Ok(reading.finish())
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

struct Reading {
    recording: Recording,
    time: u64,
    /// The live block at each address.
    live: HashMap<u64, usize>,
    unpacked: Unpacked,
    /// The bytes in live blocks, if the recording has every block of the program.
    follower: Option<Follower>,
}

impl Reading {
    fn new(header: WireHeader) -> Self {
        let follower = header.every_block.then(Follower::default);
        let recording = Recording {
            program: header.program,
            pid: header.pid,
            started_ms: header.started_ms,
            sample_bytes: header.sample_bytes,
            is_lossy: header.lossy,
            has_free_stacks: header.free_stacks,
            ..Recording::default()
        };
        Reading {
            recording,
            time: 0,
            live: HashMap::new(),
            unpacked: Unpacked::default(),
            follower,
        }
    }

    fn finish(mut self) -> Recording {
        self.recording.length = self.time;
        // With blocks missing, the sums are closer, and without its end the peak may come later.
        let follower = self.follower.filter(|_| self.recording.is_whole);
        self.recording.exact_peak = follower.and_then(Follower::peak);
        self.recording
    }

    fn line(&mut self, line: &[u8]) -> Result<(), String> {
        if line.starts_with(b"{") {
            let end: WireEnd = parse(line)?;
            self.recording.lost = end.lost;
            self.recording.is_whole = end.lost == 0;
            return Ok(());
        }
        match line.get(1..4) {
            Some(b"\"+\"") => self.allocated_line(line),
            Some(b"\"-\"") => self.freed_line(line),
            Some(b"\"=\"") => self.sums(line),
            Some(b"\"!\"") => {
                let WireMark(IgnoredAny, since, text, cycle) = parse(line)?;
                self.wait(since);
                let cycle = cycle.map(|cycle| cycle.ended_at(self.time));
                self.recording.marks.push(Mark { time: self.time, text, cycle });
                Ok(())
            }
            _ => self.table(line),
        }
    }

    /// Advances the time. The numbers of a damaged file may add up to any.
    fn wait(&mut self, since: u64) {
        self.time = self.time.saturating_add(since);
    }

    fn packed(&mut self, bytes: &[u8]) -> Result<(), Defect> {
        let mut unpacked = std::mem::take(&mut self.unpacked);
        let read = unpacked.read(bytes, |since, event| {
            self.wait(since);
            match event {
                Event::Allocated { address, site, requested, usable, weight } => {
                    let allocated_at = self.time;
                    let block =
                        Block { site, requested, usable, weight, allocated_at, freed: None };
                    self.allocated(address, block);
                }
                Event::Freed { address, thread, usable, site } => {
                    if !self.freed(address, thread, site) {
                        self.older(usable);
                    }
                }
            }
        });
        self.unpacked = unpacked;
        read
    }

    fn allocated(&mut self, address: u64, block: Block) {
        // If the end of the previous block at this address was lost, it ends now at the latest.
        let place = self.recording.blocks.len();
        if let Some(before) = self.live.insert(address, place) {
            let freed = Freed { time: self.time, thread: 0, site: 0 };
            self.recording.blocks.set_freed(before, freed);
        }
        self.recording.blocks.push(block);
        if let Some(follower) = &mut self.follower {
            follower.allocated(block.usable, place + 1, self.time);
        }
    }

    /// Ends a block. Returns `false` if its allocation is not in the recording.
    fn freed(&mut self, address: u64, thread: u32, site: u32) -> bool {
        let Some(place) = self.live.remove(&address) else { return false };
        self.recording.blocks.set_freed(place, Freed { time: self.time, thread, site });
        if let Some(follower) = &mut self.follower
            && let Some(block) = self.recording.blocks.get(place)
        {
            follower.freed(block.usable, Some(place));
        }
        true
    }

    /// Notes that a block from before the recording was freed.
    fn older(&mut self, usable: u64) {
        if let Some(follower) = &mut self.follower {
            follower.freed(usable, None);
        }
    }

    /// Reads a line of version 1: a block was allocated.
    fn allocated_line(&mut self, line: &[u8]) -> Result<(), String> {
        let fields: Vec<Value> = parse(line)?;
        let number = |place: usize| {
            fields
                .get(place)
                .and_then(Value::as_u64)
                .ok_or_else(|| format!("no number in field {place}"))
        };
        self.wait(number(1)?);
        let block = Block {
            site: u32::try_from(number(2)?).map_err(|error| error.to_string())?,
            requested: number(4)?,
            usable: number(5)?,
            weight: fields.get(6).and_then(Value::as_f64).unwrap_or(1.0),
            allocated_at: self.time,
            freed: None,
        };
        self.allocated(number(3)?, block);
        Ok(())
    }

    /// Reads a line of version 1: a block was freed.
    fn freed_line(&mut self, line: &[u8]) -> Result<(), String> {
        let (_, since, address, thread): (String, u64, u64, u32) = parse(line)?;
        self.wait(since);
        // A block whose allocation was lost is not in the recording.
        self.freed(address, thread, 0);
        Ok(())
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
        self.wait(since);
        let time = self.time;
        let point = Point { time, allocated_bytes, allocations, freed_bytes, frees, resident };
        self.recording.timeline.push(point);
        if let Some(follower) = &mut self.follower {
            follower.sums(point.live_bytes());
        }
        Ok(())
    }

    fn table(&mut self, line: &[u8]) -> Result<(), String> {
        let fields: Vec<Value> = parse(line)?;
        match fields.first().and_then(Value::as_str) {
            Some("site") => {
                let (_, number, thread, stack, scope): (String, u32, u32, Vec<String>, u16) =
                    parse(line)?;
                let stack = stack.iter().map(|address| hex(address)).collect::<Result<_, _>>()?;
                self.recording.sites.insert(number, Site { thread, stack, scope });
            }
            Some("scope") => {
                let (_, outer, name): (String, u16, String) = parse(line)?;
                self.recording.scopes.push(Scope { outer, name });
            }
            Some("span") => {
                let (_, scope, trace, span): (String, u16, String, String) = parse(line)?;
                self.recording.spans.push(ScopeSpan { scope, trace, span });
            }
            Some("thread") => {
                let (_, number, tid, name): (String, u32, u32, Option<String>) = parse(line)?;
                self.recording.threads.insert(number, Thread { tid, name });
            }
            Some("module") => self.module(line)?,
            Some("older") => {
                let (_, since, usable): (String, u64, u64) = parse(line)?;
                self.wait(since);
                self.older(usable);
            }
            // Lines of later versions are ignored.
            _ => {}
        }
        Ok(())
    }

    fn module(&mut self, line: &[u8]) -> Result<(), String> {
        let (_, path, build_id, base, segments): (
            String,
            String,
            Option<String>,
            String,
            Vec<String>,
        ) = parse(line)?;
        let segment = |text: &String| {
            let (from, to) = text.split_once('-').ok_or("a segment is two addresses")?;
            Ok::<_, String>(hex(from)?..hex(to)?)
        };
        let segments = segments.iter().map(segment).collect::<Result<_, _>>()?;
        let module = Module { path, build_id, base: hex(&base)?, segments };
        if !self.recording.modules.contains(&module) {
            self.recording.modules.push(module);
        }
        Ok(())
    }
}

fn parse<'l, T: Deserialize<'l>>(line: &'l [u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| error.to_string())
}

fn hex(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16).map_err(|error| format!("{text}: {error}"))
}

#[cfg(test)]
mod tests;
