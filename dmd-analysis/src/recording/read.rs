//! Reads the file of a recording: all but its blocks, which are read when they are wanted.

use std::fs::File;
use std::io::{BufRead, Read};

use serde_json::Value;

use super::events::{Events, Part, WireHeader, parse};
use super::packed::Event;
use super::peak::Follower;
use super::source::{Counted, FilePart, Source, unpacked};
use super::{Module, Recording, RecordingError, Scope, ScopeSpan, Site, Thread};
use crate::read::MOST_FRAMES;

/// Reads a recording that may be gzipped. Its bytes are kept in memory, as they are.
///
/// # Errors
///
/// If the input is not a recording, or if it is damaged before its end.
pub fn read(mut input: impl Read) -> Result<Recording, RecordingError> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).map_err(RecordingError::Io)?;
    let source = Source::Memory(bytes.into());
    let recording = read_all(source.open()?)?;
    Ok(Recording { source, ..recording })
}

/// Reads a recording as [`read`] does, from all bytes of a file. Its blocks stay in the file; but
/// not if it cannot be read twice, as a pipe. Bytes that the file gets meanwhile are not read.
///
/// # Errors
///
/// The same as those of [`read`].
pub fn read_with_file(input: impl Read, file: File) -> Result<Recording, RecordingError> {
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return read(input);
    }
    let mut input = Counted::new(input);
    let recording = read_all(unpacked(&mut input)?)?;
    Ok(Recording { source: Source::File(FilePart::new(file, input.count)), ..recording })
}

/// Returns whether a file is a recording, from the beginning of its text. The first line is enough.
#[must_use]
pub fn is_recording(text: &[u8]) -> bool {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let header = serde_json::from_slice::<Value>(line).ok();
    header.is_some_and(|header| header.get("recording").is_some())
}

fn read_all(input: Box<dyn BufRead + '_>) -> Result<Recording, RecordingError> {
    let events = Events::open(input)?;
    let mut reading = Reading::new(&events.header, events.version);
    let length = events.each(|time, part| reading.part(time, part))?;
    Ok(reading.finish(length))
}

struct Reading {
    recording: Recording,
    /// The bytes in live blocks, if the recording has every block of the program.
    follower: Option<Follower>,
}

impl Reading {
    fn new(header: &WireHeader, version: u64) -> Self {
        let follower = header.every_block.then(|| Follower::new(version));
        let recording = Recording {
            program: header.program.clone(),
            pid: header.pid,
            started_ms: header.started_ms,
            sample_bytes: header.sample_bytes,
            is_lossy: header.lossy,
            has_free_stacks: header.free_stacks,
            ..Recording::default()
        };
        Reading { recording, follower }
    }

    fn finish(mut self, length: u64) -> Recording {
        self.recording.length = length;
        // With blocks missing, the sums are closer, and without its end the peak may come later.
        let follower = self.follower.filter(|_| self.recording.is_whole);
        self.recording.exact_peak = follower.and_then(Follower::peak);
        self.recording
    }

    fn part(&mut self, time: u64, part: Part<'_>) -> Result<(), String> {
        match part {
            Part::Event(event) => {
                self.recording.block_count += u64::from(matches!(event, Event::Allocated { .. }));
                if let Some(follower) = &mut self.follower {
                    follower.event(event, time);
                }
            }
            Part::Older(usable) => {
                if let Some(follower) = &mut self.follower {
                    follower.freed(usable);
                }
            }
            Part::Sums(point) => {
                self.recording.timeline.push(point);
                if let Some(follower) = &mut self.follower {
                    follower.sums(point.live_bytes());
                }
            }
            Part::Mark(mark) => self.recording.marks.push(mark),
            Part::Table(line) => self.table(line)?,
            Part::End(lost) => {
                self.recording.lost = lost;
                self.recording.is_whole = lost == 0;
            }
        }
        Ok(())
    }

    fn table(&mut self, line: &[u8]) -> Result<(), String> {
        let fields: Vec<Value> = parse(line)?;
        match fields.first().and_then(Value::as_str) {
            Some("site") => {
                let (_, number, thread, stack, scope): (String, u32, u32, Vec<String>, u16) =
                    parse(line)?;
                self.recording.cut_stacks += usize::from(stack.len() > MOST_FRAMES);
                // The innermost frames come first.
                let stack = stack.iter().take(MOST_FRAMES).map(|address| hex(address));
                let stack = stack.collect::<Result<_, _>>()?;
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

fn hex(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16).map_err(|error| format!("{text}: {error}"))
}

#[cfg(test)]
mod tests;
