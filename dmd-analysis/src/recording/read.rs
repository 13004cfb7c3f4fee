//! Reads the file of a recording, even one that was cut off because its program was killed.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read};
use std::{error, fmt};

use serde::Deserialize;
use serde_json::Value;

use crate::read::Unpacker;

use super::peak::Follower;
use super::{Block, Freed, Mark, Module, Point, Recording, Scope, Site, Thread};

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
                write!(f, "recording of version {version}; only 1 is known")
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
    recording: u64,
    program: Option<String>,
    pid: u32,
    #[serde(rename = "startedMs")]
    started_ms: u64,
    #[serde(rename = "sampleBytes")]
    sample_bytes: Option<u64>,
    #[serde(default)]
    lossy: bool,
    #[serde(default, rename = "everyBlock")]
    every_block: bool,
}

#[derive(Deserialize)]
struct WireEnd {
    lost: u64,
}

/// The most bytes of a line: a stack of half a million frames.
const LONGEST_LINE: u64 = 16 << 20;

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
        Some(1) => {}
        Some(version) => return Err(RecordingError::Version(version)),
    }
    let header: WireHeader = serde_json::from_value(header)
        .map_err(|error| RecordingError::Line { number: 1, problem: error.to_string() })?;
    debug_assert_eq!(header.recording, 1);
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
        reading.line(&line).map_err(|problem| RecordingError::Line { number, problem })?;
    }
    Ok(reading.finish())
}

struct Reading {
    recording: Recording,
    time: u64,
    /// The live block at each address.
    live: HashMap<u64, usize>,
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
            ..Recording::default()
        };
        Reading { recording, time: 0, live: HashMap::new(), follower }
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
            Some(b"\"+\"") => self.allocated(line),
            Some(b"\"-\"") => self.freed(line),
            Some(b"\"=\"") => self.sums(line),
            Some(b"\"!\"") => {
                let (_, since, words): (String, u64, String) = parse(line)?;
                self.wait(since);
                self.recording.marks.push(Mark { time: self.time, text: words });
                Ok(())
            }
            _ => self.table(line),
        }
    }

    /// Advances the time. The numbers of a damaged file may add up to any.
    fn wait(&mut self, since: u64) {
        self.time = self.time.saturating_add(since);
    }

    fn allocated(&mut self, line: &[u8]) -> Result<(), String> {
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
        // If the end of the previous block at this address was lost, it ends now at the latest.
        let place = self.recording.blocks.len();
        if let Some(before) = self.live.insert(number(3)?, place) {
            self.recording.blocks[before].freed = Some(Freed { time: self.time, thread: 0 });
        }
        self.recording.blocks.push(block);
        if let Some(follower) = &mut self.follower {
            follower.allocated(block.usable, place + 1, self.time);
        }
        Ok(())
    }

    fn freed(&mut self, line: &[u8]) -> Result<(), String> {
        let (_, since, address, thread): (String, u64, u64, u32) = parse(line)?;
        self.wait(since);
        // A block whose allocation was lost is not in the recording.
        if let Some(place) = self.live.remove(&address) {
            let block = &mut self.recording.blocks[place];
            block.freed = Some(Freed { time: self.time, thread });
            if let Some(follower) = &mut self.follower {
                follower.freed(block.usable, Some(place));
            }
        }
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
            Some("thread") => {
                let (_, number, tid, name): (String, u32, u32, Option<String>) = parse(line)?;
                self.recording.threads.insert(number, Thread { tid, name });
            }
            Some("module") => self.module(line)?,
            Some("older") => {
                let (_, since, usable): (String, u64, u64) = parse(line)?;
                self.wait(since);
                if let Some(follower) = &mut self.follower {
                    follower.freed(usable, None);
                }
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
mod tests {
    use super::*;
    use crate::recording::{Moment, Which};
    use std::io::Write;
    use std::ops::Range;

    const LINES: &str = r#"{"recording":1,"program":"/bin/p","pid":7,"startedMs":5,"sampleBytes":1024}
["module","/bin/p","abcd","1000",["1000-2000"]]
["=",0,100,2,0,0,4096]
["thread",1,70,"main"]
["scope",0,"request"]
["site",1,1,["1010","1020"],1]
["+",10,1,4096,100,112,9.5]
["!",1,"gc"]
["-",5,4096,2]
["-",5,8192,2]
["later",1]
["=",4,212,3,112,1,8192]
{"end":true,"events":2,"lost":3}
"#;

    #[test]
    fn all_of_a_recording_is_read() {
        let recording = read(LINES.as_bytes()).unwrap();
        assert_eq!(recording.blocks.len(), 1);
        let block = recording.blocks[0];
        let freed = Some(Freed { time: 16, thread: 2 });
        assert_eq!((block.allocated_at, block.freed, block.weight), (10, freed, 9.5));
        assert_eq!(recording.marks, [Mark { time: 11, text: "gc".to_owned() }]);
        assert_eq!(recording.timeline[1].live_bytes(), 100);
        assert_eq!((recording.length, recording.lost, recording.is_whole), (25, 3, false));
        assert!(recording.incomplete().unwrap().contains("3 allocations and frees"));
        let whole = LINES.replace("\"lost\":3", "\"lost\":0");
        let whole = read(whole.as_bytes()).unwrap();
        assert!(whole.is_whole && whole.incomplete().is_none());
        assert_eq!(recording.sites[&1].stack, [0x1010, 0x1020]);
        assert_eq!(recording.scopes[usize::from(recording.sites[&1].scope) - 1].name, "request");
        assert_eq!(recording.modules[0].segments, [Range { start: 0x1000, end: 0x2000 }]);
    }

    #[test]
    fn what_was_cut_off_is_read_as_far_as_it_goes() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(LINES.as_bytes()).unwrap();
        packed.flush().unwrap();
        let cut = packed.get_ref().clone();
        let recording = read(&cut[..]).unwrap();
        assert_eq!(recording.blocks.len(), 1);
        for length in LINES.find('\n').unwrap() + 1..LINES.len() {
            let recording = read(&LINES.as_bytes()[..length]).unwrap();
            assert!(!recording.is_whole || length == LINES.len());
        }
    }

    #[test]
    fn the_peak_is_exact_to_the_event_if_every_block_is_there() {
        let header = r#"{"recording":1,"pid":7,"startedMs":5,"everyBlock":true}"#;
        // All within a microsecond, between two sums that do not see it.
        let lines = r#"
["=",0,1000,2,100,1,0]
["+",9,1,16,50,64]
["older",0,100]
["+",0,1,32,100,112]
["-",0,16,1]
["+",0,1,48,40,40]
["-",0,32,1]
["=",9,1216,5,276,3,0]
{"end":true,"events":5,"lost":0,"whole":true}
"#;
        let recording = read([header, lines].concat().as_bytes()).unwrap();
        let peak = recording.peak().unwrap();
        // 900 and 64, less 100 and more 112.
        assert_eq!((peak.bytes, peak.time, peak.is_exact), (976, 9, true));
        let at_peak: Vec<_> = recording.blocks(Which::AtPeak).map(|block| block.usable).collect();
        assert_eq!(at_peak, [64, 112]);
        assert_eq!(recording.at(Moment::Peak), Ok(9));
        let header = header.replace("true", "false");
        let recording = read([&header, lines].concat().as_bytes()).unwrap();
        assert_eq!(recording.peak().map(|peak| (peak.bytes, peak.is_exact)), Some((940, false)));
    }

    #[test]
    fn what_is_no_recording_is_refused() {
        for (text, expected) in [
            ("", "no recording"),
            ("{\"version\":5}\n", "no recording"),
            ("{\"recording\":2}\n", "version 2"),
            (
                "{\"recording\":1,\"pid\":1,\"startedMs\":1}\n[\"+\",1]\n",
                "line 2: no number in field 2",
            ),
            ("{\"recording\":1,\"pid\":1,\"startedMs\":1}\nnonsense\n", "line 2: "),
        ] {
            let error = read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let head = "{\"recording\":1,\"pid\":1,\"startedMs\":1}\n";
        let long = format!("{head}[\"!\",1,\"{}\"]\n", "x".repeat(17 << 20));
        let error = read(long.as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "line 2: it has more than 16777216 bytes");
        assert!(is_recording(LINES.as_bytes()) && is_recording(b"{\"recording\":2}\n"));
        assert!(!is_recording(b"") && !is_recording(b"{\"version\":5,\n"));
    }

    #[test]
    fn times_that_add_up_to_too_much_stop_at_the_last_one() {
        let far = u64::MAX - 1;
        let text = LINES.replace("[\"!\",1,", &format!("[\"!\",{far},"));
        let recording = read(text.as_bytes()).unwrap();
        assert_eq!(recording.length, u64::MAX);
        assert_eq!(recording.blocks[0].freed.map(|freed| freed.time), Some(u64::MAX));
    }
}
