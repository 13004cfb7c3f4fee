//! Writes the file of a recording: lines of JSON in one gzip member, flushed about every second.
//!
//! If the program is killed, the flushed lines are in the file.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use memreport::__private::{Mark, MarkReader, OWN, all_scopes, try_all_scopes};
use memreport::HeapCounters;
use serde_json::json;

use super::RecordingSummary;
use super::loaded::Loaded;
use super::sums::OwnWork;
use crate::event::events::{Event, Listener, TimedEvent};
use crate::mem::sys;
use crate::mem::sys::Module;
use crate::sample::plan;
use crate::stack::site::SiteId;
use crate::stack::{site, thread};

/// The interval between flushes.
const FLUSH: Duration = Duration::from_secs(1);

/// The writer of a recording. It allocates much, so it belongs to the recorder's thread.
pub(super) struct Writer {
    out: GzEncoder<BufWriter<File>>,
    settings: Settings,
    /// The time of the last line, in nanoseconds of the monotonic clock.
    last: u64,
    /// The sites and threads that are written.
    sites: HashSet<u32>,
    threads: HashSet<u32>,
    loaded: Loaded,
    /// The number of scopes that are written, and the highest one of a site.
    scopes: usize,
    highest_scope: usize,
    marks: MarkReader,
    /// The time of the last sums, sums that are not written yet, and what they leave out.
    sums_taken: Instant,
    sums: Vec<TimedLine>,
    own_work: OwnWork,
    /// A buffer that is empty between two calls of `write_new`, kept for its capacity.
    lines: Vec<TimedLine>,
    flushed: Instant,
    events: u64,
    /// Live blocks whose allocation is in the file.
    live: HashSet<usize>,
}

/// The settings of a recording that its file has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// The bytes between two samples on average; `None` if every block is recorded.
    pub(super) sample_bytes: Option<u64>,
    /// True if events may be lost.
    pub(super) may_lose: bool,
    /// The interval between sums.
    pub(super) interval: Duration,
}

impl Writer {
    /// Writes to this file. Called on the recorder's thread, whose memory is in no sum.
    pub(super) fn new(file: File, settings: Settings) -> io::Result<Self> {
        let own_work = OwnWork::of_this_thread();
        let out = GzEncoder::new(BufWriter::new(file), Compression::fast());
        Ok(Writer {
            out,
            settings,
            last: sys::monotonic(),
            sites: HashSet::new(),
            threads: HashSet::new(),
            loaded: Loaded::new()?,
            scopes: 0,
            highest_scope: 0,
            marks: MarkReader::default(),
            sums_taken: Instant::now(),
            sums: Vec::new(),
            own_work,
            lines: Vec::new(),
            flushed: Instant::now(),
            events: 0,
            live: HashSet::new(),
        })
    }

    /// Writes the header and the modules.
    pub(super) fn write_header(&mut self) -> io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let program = std::env::current_exe().map(|path| path.to_string_lossy().into_owned());
        let header = json!({
            "recording": 1,
            "program": program.ok(),
            "pid": std::process::id(),
            "startedMs": u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            "sampleBytes": self.settings.sample_bytes,
            "lossy": self.settings.may_lose,
            "everyBlock": self.settings.sample_bytes.is_none() && plan::has_every_block(),
        });
        writeln!(self.out, "{header}")?;
        let modules = self.loaded.first();
        self.write_modules(modules)
    }

    /// Writes all events since the last call, in the order of their times.
    pub(super) fn write_new(&mut self, listener: &mut Listener) -> io::Result<()> {
        self.take_sums_if_due();
        let mut lines = std::mem::take(&mut self.lines);
        lines.append(&mut self.sums);
        let marks = self.marks.try_take();
        lines.extend(marks.into_iter().map(TimedLine::of_mark));
        listener
            .drain(|event| lines.push(TimedLine { time: event.time, line: Line::Event(event) }));
        lines.sort_by_key(|line| line.time);
        for TimedLine { time, line } in lines.drain(..) {
            let since = self.since_last(time);
            match line {
                Line::Event(happened) => self.write_event(since, happened)?,
                Line::Mark(words) => writeln!(self.out, "{}", json!(["!", since, words]))?,
                Line::Sums(sums, resident) => self.write_sums(since, sums, resident)?,
            }
            // Keeps the interval between sums while many lines are written.
            self.take_sums_if_due();
        }
        self.lines = lines;
        if let Some(list) = (self.highest_scope > self.scopes).then(try_all_scopes).flatten() {
            self.write_scopes(&list)?;
        }
        if self.flushed.elapsed() >= FLUSH {
            self.loaded.request_if_stale();
            let modules = self.loaded.take_new();
            self.write_modules(modules)?;
            self.out.flush()?;
            self.flushed = Instant::now();
        }
        Ok(())
    }

    /// Writes the last lines, when no hook waits any more.
    pub(super) fn finish(mut self, lost: u64) -> io::Result<RecordingSummary> {
        let marks = self.marks.take();
        for TimedLine { time, line } in marks.into_iter().map(TimedLine::of_mark) {
            let since = self.since_last(time);
            if let Line::Mark(words) = line {
                writeln!(self.out, "{}", json!(["!", since, words]))?;
            }
        }
        self.write_scopes(&all_scopes())?;
        let modules = self.loaded.list();
        self.write_modules(modules)?;
        let events = self.events;
        let end = json!({ "end": true, "events": events, "lost": lost, "whole": lost == 0 });
        writeln!(self.out, "{end}")?;
        self.out.finish()?.flush()?;
        self.loaded.end();
        Ok(RecordingSummary { events, lost })
    }

    fn write_sums(&mut self, since: u64, sums: HeapCounters, resident: u64) -> io::Result<()> {
        let HeapCounters { allocated_bytes, allocations, freed_bytes, frees, .. } =
            self.own_work.without_elsewhere(sums);
        writeln!(
            self.out,
            "[\"=\",{since},{allocated_bytes},{allocations},{freed_bytes},{frees},{resident}]"
        )
    }

    /// Leaves out a line: the next line includes its time difference.
    #[expect(clippy::unnecessary_wraps, reason = "ends functions that write")]
    fn skip_line(&mut self, since: u64) -> io::Result<()> {
        self.last -= since * 1000;
        Ok(())
    }

    /// Returns the microseconds since the last line.
    fn since_last(&mut self, time: u64) -> u64 {
        let since = time.saturating_sub(self.last) / 1000;
        self.last += since * 1000;
        since
    }

    fn write_event(&mut self, since: u64, happened: TimedEvent) -> io::Result<()> {
        let thread = happened.thread;
        match happened.event {
            Event::Allocated { address, block } => {
                let site = block.site.number();
                // The tracker's own blocks are not recorded.
                if is_own(block.site) {
                    if self.settings.sample_bytes.is_none() {
                        self.own_work.allocated(block.usable);
                    }
                    return self.skip_line(since);
                }
                self.live.insert(address);
                self.write_site(block.site)?;
                let (requested, usable) = (block.requested, block.usable);
                write!(self.out, "[\"+\",{since},{site},{address},{requested},{usable}")?;
                let weight = block.rate.weight(usable);
                if weight > 1.0 {
                    write!(self.out, ",{weight}")?;
                }
                writeln!(self.out, "]")?;
            }
            Event::Freed { address, block } => {
                // The block was allocated before the recording, or is the tracker's own.
                if !self.live.remove(&address) {
                    if self.settings.sample_bytes.is_some() {
                        return self.skip_line(since);
                    }
                    if is_own(block.site) {
                        self.own_work.freed(block.usable);
                        return self.skip_line(since);
                    }
                    return writeln!(self.out, "[\"older\",{since},{}]", block.usable);
                }
                self.write_thread(thread)?;
                writeln!(self.out, "[\"-\",{since},{address},{thread}]")?;
            }
        }
        self.events += 1;
        Ok(())
    }

    /// Writes a site and its thread when it first occurs. Its scope may follow later.
    fn write_site(&mut self, id: SiteId) -> io::Result<()> {
        if !self.sites.insert(id.number()) {
            return Ok(());
        }
        let Some(site) = site::site(id) else { return Ok(()) };
        self.write_thread(site.thread)?;
        self.highest_scope = self.highest_scope.max(usize::from(site.scope));
        let frames: Vec<_> = site::frames(site.stack).collect();
        self.loaded.note(&frames);
        let stack: Vec<_> = frames.iter().map(|frame| format!("{frame:x}")).collect();
        writeln!(self.out, "{}", json!(["site", id.number(), site.thread, stack, site.scope]))
    }

    /// Writes the scopes that are new.
    fn write_scopes(&mut self, all: &[(u16, String)]) -> io::Result<()> {
        for (around, name) in all.iter().skip(self.scopes) {
            writeln!(self.out, "{}", json!(["scope", around, name]))?;
        }
        self.scopes = self.scopes.max(all.len());
        Ok(())
    }

    fn write_thread(&mut self, number: u32) -> io::Result<()> {
        if !self.threads.insert(number) {
            return Ok(());
        }
        let id = thread::registered()
            .find(|thread| thread.number == number)
            .map_or(0, |thread| thread.system_id);
        writeln!(self.out, "{}", json!(["thread", number, id, sys::thread_name(id)]))
    }

    fn write_modules(&mut self, modules: Option<Vec<Module>>) -> io::Result<()> {
        for module in modules.into_iter().flatten() {
            let base = format!("{:x}", module.bias);
            let segments: Vec<_> =
                module.segments.iter().map(|(from, to)| format!("{from:x}-{to:x}")).collect();
            let line = json!(["module", module.path, module.build_id, base, segments]);
            writeln!(self.out, "{line}")?;
        }
        Ok(())
    }

    fn take_sums_if_due(&mut self) {
        if self.sums_taken.elapsed() >= self.settings.interval {
            self.take_sums();
        }
    }

    /// Takes the exact sums of this moment, for the next call of `write_new`.
    pub(super) fn take_sums(&mut self) {
        self.sums_taken = Instant::now();
        if let Some(sums) = self.own_work.counters() {
            let resident = sys::resident_bytes().unwrap_or(0);
            let line = Line::Sums(sums, resident);
            self.sums.push(TimedLine { time: sys::monotonic(), line });
        }
    }
}

/// Returns whether a site is of the tracker's own blocks.
fn is_own(id: SiteId) -> bool {
    site::site(id).is_some_and(|site| u32::from(site.on_alloc) == OWN)
}

/// A line of the file, with its time in nanoseconds of the monotonic clock.
struct TimedLine {
    time: u64,
    line: Line,
}

impl TimedLine {
    fn of_mark(mark: Mark) -> Self {
        let ago = u64::try_from(mark.time.elapsed().as_nanos()).unwrap_or(u64::MAX);
        TimedLine { time: sys::monotonic().saturating_sub(ago), line: Line::Mark(mark.words) }
    }
}

/// The content of a line.
enum Line {
    Event(TimedEvent),
    /// A mark of the program, with its text.
    Mark(Cow<'static, str>),
    /// The heap counters, and the resident bytes of the process.
    Sums(HeapCounters, u64),
}
