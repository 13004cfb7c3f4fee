//! Writes the file of a recording: lines of JSON, and packed events. It is flushed about every
//! second: if the program is killed, the flushed part is in the file.
//!
//! Hooks wait for this writer when it is slower than the program, so an event costs it some 50 ns.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use memreport::__private::{Mark, MarkReader, OWN, all_scopes, try_all_scopes};
use memreport::{HeapCounters, MemoryEvent};
use serde_json::{Value, json};

use super::RecordingSummary;
use super::loaded::Loaded;
use super::members::Members;
use super::packed::Packed;
use super::sums::OwnWork;
use crate::dump::span_fields;
use crate::event::events::{Event, Listener, TimedEvent};
use crate::mem::sys;
use crate::mem::sys::Module;
use crate::stack::site::SiteId;
use crate::stack::{site, thread};
use crate::table::has_every_block;

/// The interval between flushes.
const FLUSH: Duration = Duration::from_secs(1);

/// The number of events between two looks at the clock.
const LOOK: usize = 1024;

/// The number of events at once that shows that hooks wait, or soon will.
const HURRY: usize = 1 << 14;

/// The writer of a recording. It allocates much, so it belongs to the recorder's thread.
pub(super) struct Writer {
    out: Members,
    settings: Settings,
    /// The time of the last line or event, in nanoseconds of the monotonic clock.
    last: u64,
    packed: Packed,
    /// The state of each site, by number.
    sites: Vec<KnownSite>,
    /// The kernel's number of each thread whose name was written, by the tracker's number.
    threads: HashMap<u32, u32>,
    /// The thread of the last event.
    last_thread: Option<u32>,
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
    new: Vec<TimedEvent>,
    flushed: Instant,
    events: u64,
}

/// The state of a site in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum KnownSite {
    #[default]
    Unknown,
    /// The tracker's own, whose blocks are not recorded.
    Own,
    /// The program's, and not written yet.
    Program,
    Written,
}

/// The settings of a recording that its file has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// The bytes between two samples on average; `None` if every block is recorded.
    pub(super) sample_bytes: Option<u64>,
    /// True if events may be lost.
    pub(super) may_lose: bool,
    /// True if frees have stacks.
    pub(super) free_stacks: bool,
    /// The interval between sums.
    pub(super) interval: Duration,
}

impl Writer {
    /// Writes to this file. Called on the recorder's thread, whose memory is in no sum.
    pub(super) fn new(file: File, settings: Settings) -> io::Result<Self> {
        let own_work = OwnWork::of_this_thread();
        Ok(Writer {
            out: Members::new(file),
            settings,
            last: sys::monotonic(),
            packed: Packed::default(),
            sites: Vec::new(),
            threads: HashMap::new(),
            last_thread: None,
            loaded: Loaded::new()?,
            scopes: 0,
            highest_scope: 0,
            marks: MarkReader::default(),
            sums_taken: Instant::now(),
            sums: Vec::new(),
            own_work,
            new: Vec::new(),
            flushed: Instant::now(),
            events: 0,
        })
    }

    /// Writes the header and the modules.
    pub(super) fn write_header(&mut self) -> io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let program = std::env::current_exe().map(|path| path.to_string_lossy().into_owned());
        let header = json!({
            "recording": 2,
            "program": program.ok(),
            "pid": std::process::id(),
            "startedMs": u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            "sampleBytes": self.settings.sample_bytes,
            "lossy": self.settings.may_lose,
            "freeStacks": self.settings.free_stacks,
            "everyBlock": self.settings.sample_bytes.is_none() && has_every_block(),
        });
        writeln!(self.out, "{header}")?;
        let modules = self.loaded.first();
        self.write_modules(modules)
    }

    /// Writes all events since the last call, in the order of their times.
    pub(super) fn write_new(&mut self, listener: &mut Listener) -> io::Result<()> {
        self.take_sums_if_due();
        let mut new = std::mem::take(&mut self.new);
        listener.drain(|event| new.push(event));
        // On one thread they are in order, which this sort finds at once.
        new.sort_by_key(|event| event.time);
        self.out.is_hurried = new.len() >= HURRY;
        let marks = self.marks.try_take();
        let mut lines = std::mem::take(&mut self.sums);
        lines.extend(marks.into_iter().map(TimedLine::of_mark));
        lines.sort_by_key(|line| line.time);
        let mut lines = lines.into_iter().peekable();
        for (happened, count) in new.iter().zip(1..) {
            while let Some(line) = lines.next_if(|line| line.time <= happened.time) {
                self.write_timed(line)?;
            }
            self.write_event(happened)?;
            if count % LOOK == 0 {
                // Keeps the interval between sums while many events are written.
                self.take_sums_if_due();
            }
        }
        for line in lines {
            self.write_timed(line)?;
        }
        self.write_packed()?;
        new.clear();
        self.new = new;
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
        for mark in marks {
            self.write_timed(TimedLine::of_mark(mark))?;
        }
        self.write_scopes(&all_scopes())?;
        for span in span_fields() {
            writeln!(self.out, "{}", json!(["span", span[0], span[1], span[2]]))?;
        }
        let modules = self.loaded.list();
        self.write_modules(modules)?;
        let events = self.events;
        let end = json!({ "end": true, "events": events, "lost": lost, "whole": lost == 0 });
        writeln!(self.out, "{end}")?;
        self.out.flush()?;
        self.loaded.end();
        Ok(RecordingSummary { events, lost })
    }

    /// Writes the packed events. Lines with a time come after them.
    fn write_packed(&mut self) -> io::Result<()> {
        let bytes = self.packed.bytes();
        if !bytes.is_empty() {
            writeln!(self.out, "[\"packed\",{}]", bytes.len())?;
            self.out.write_all(bytes)?;
            self.packed.clear();
        }
        Ok(())
    }

    fn write_timed(&mut self, TimedLine { time, line }: TimedLine) -> io::Result<()> {
        self.write_packed()?;
        let since = self.since_last(time);
        match line {
            Line::Mark(words, None) => writeln!(self.out, "{}", json!(["!", since, words])),
            Line::Mark(words, Some(event)) => {
                writeln!(self.out, "{}", json!(["!", since, words, cycle(&event)]))
            }
            Line::Sums(sums, resident) => {
                let HeapCounters { allocated_bytes, allocations, freed_bytes, frees, .. } =
                    self.own_work.without_elsewhere(sums);
                writeln!(
                    self.out,
                    "[\"=\",{since},{allocated_bytes},{allocations},{freed_bytes},{frees},{resident}]"
                )
            }
        }
    }

    /// Returns the microseconds since the last line or event.
    fn since_last(&mut self, time: u64) -> u64 {
        let since = time.saturating_sub(self.last) / 1000;
        self.last += since * 1000;
        since
    }

    fn write_event(&mut self, happened: &TimedEvent) -> io::Result<()> {
        let (Event::Allocated { block, .. } | Event::Freed { block, .. }) = happened.event;
        let is_allocation = matches!(happened.event, Event::Allocated { .. });
        let known = self.known(block.site);
        if known == KnownSite::Own {
            match (self.settings.sample_bytes, is_allocation) {
                (Some(_), _) => {}
                (None, true) => self.own_work.allocated(block.usable),
                (None, false) => self.own_work.freed(block.usable),
            }
            return Ok(());
        }
        let mut happened = *happened;
        match &mut happened.event {
            Event::Freed { freed_at, .. } => {
                self.write_thread(happened.thread)?;
                match self.known(*freed_at) {
                    KnownSite::Program => self.write_site(*freed_at)?,
                    // The tracker's own code may free a block of the program's.
                    KnownSite::Own => *freed_at = SiteId::UNKNOWN,
                    _ => {}
                }
            }
            Event::Allocated { .. } if known == KnownSite::Program => {
                self.write_site(block.site)?;
            }
            Event::Allocated { .. } => {}
        }
        let since = self.since_last(happened.time);
        self.packed.push(since, &happened);
        self.events += 1;
        Ok(())
    }

    fn known(&mut self, id: SiteId) -> KnownSite {
        let place = id.number() as usize;
        if place >= self.sites.len() {
            self.sites.resize(place + 1, KnownSite::Unknown);
        }
        let known = &mut self.sites[place];
        if *known == KnownSite::Unknown {
            *known = if is_own(id) { KnownSite::Own } else { KnownSite::Program };
        }
        *known
    }

    /// Writes a site and its thread. Its scope may follow later.
    fn write_site(&mut self, id: SiteId) -> io::Result<()> {
        self.sites[id.number() as usize] = KnownSite::Written;
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
        if self.last_thread == Some(number) {
            return Ok(());
        }
        self.last_thread = Some(number);
        let thread = thread::registered_as(number);
        let id = thread.map_or(0, |thread| thread.system_id);
        // A number may pass from a thread that has ended to another.
        if self.threads.insert(number, id) == Some(id) {
            return Ok(());
        }
        let name = thread.and_then(|thread| thread.name());
        writeln!(self.out, "{}", json!(["thread", number, id, name]))
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

/// Returns a cycle, and the time of its mark, for the line of the mark. Its slices are in
/// microseconds before the mark.
fn cycle((event, marked): &(MemoryEvent, Instant)) -> Value {
    let before = |time: Instant| {
        u64::try_from(marked.saturating_duration_since(time).as_micros()).unwrap_or(u64::MAX)
    };
    let slices: Vec<[u64; 2]> =
        event.slices.iter().map(|slice| [before(slice.start), before(slice.end)]).collect();
    let mut cycle = json!({ "reason": event.reason, "slicesUs": slices });
    if let Some(reason) = &event.nonincremental_reason {
        cycle["nonincrementalReason"] = json!(reason);
    }
    cycle
}

/// A line of the file, with its time in nanoseconds of the monotonic clock.
struct TimedLine {
    time: u64,
    line: Line,
}

impl TimedLine {
    fn of_mark(mark: Mark) -> Self {
        let ago = u64::try_from(mark.time.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let time = sys::monotonic().saturating_sub(ago);
        let cycle = mark.event.map(|event| (event, mark.time));
        TimedLine { time, line: Line::Mark(mark.words, cycle) }
    }
}

/// The content of a line.
enum Line {
    /// A mark of the program, with its text, and the cycle that ended then.
    Mark(Cow<'static, str>, Option<(MemoryEvent, Instant)>),
    /// The heap counters, and the resident bytes of the process.
    Sums(HeapCounters, u64),
}

#[cfg(test)]
mod tests;
