//! Writes the file of a recording: lines of JSON in one gzip member, flushed about every second.
//!
//! If the program is killed, the flushed lines are in the file.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use memreport::__private::{MarkReader, OWN, PrivateFile, all_scopes};
use memreport::{HeapCounters, heap_counters};
use serde_json::json;

use super::RecordingSummary;
use crate::event::events::{Event, Listener, TimedEvent};
use crate::mem::sys;
use crate::sample::plan;
use crate::stack::{site, thread};

/// The interval between flushes.
const FLUSH: Duration = Duration::from_secs(1);

/// The writer of a recording.
pub(crate) struct Writer {
    out: GzEncoder<BufWriter<File>>,
    listener: Listener,
    /// The time of the last line, in nanoseconds of the monotonic clock.
    last: u64,
    /// The sites and threads that are written.
    sites: HashSet<u32>,
    threads: HashSet<u32>,
    /// The number of modules and scopes that are written.
    modules: usize,
    scopes: usize,
    marks: MarkReader,
    /// The interval between sums, the time of the last sums, and sums that are not written yet.
    interval: Duration,
    sums_taken: Instant,
    sums: Vec<TimedLine>,
    /// A buffer that is empty between two calls of `write_new`, kept for its capacity.
    lines: Vec<TimedLine>,
    flushed: Instant,
    summary: RecordingSummary,
    /// Live blocks whose allocation is in the file.
    live: HashSet<usize>,
}

impl Writer {
    /// Creates the file, and begins to receive events.
    pub(crate) fn create(path: &Path, interval: Duration) -> io::Result<Self> {
        // The name appears at once: if the program is killed, the flushed lines are found.
        let file = PrivateFile::create(path)?.keep()?;
        let out = GzEncoder::new(BufWriter::new(file), Compression::fast());
        Ok(Writer {
            out,
            listener: Listener::new(),
            last: sys::monotonic(),
            sites: HashSet::new(),
            threads: HashSet::new(),
            modules: 0,
            scopes: 0,
            marks: MarkReader::default(),
            interval,
            sums_taken: Instant::now(),
            sums: Vec::new(),
            lines: Vec::new(),
            flushed: Instant::now(),
            summary: RecordingSummary::default(),
            live: HashSet::new(),
        })
    }

    /// Writes the header and the modules, after tracking has started.
    pub(crate) fn write_header(&mut self) -> io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let program = std::env::current_exe().map(|path| path.to_string_lossy().into_owned());
        let header = json!({
            "recording": 1,
            "program": program.ok(),
            "pid": std::process::id(),
            "startedMs": u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            "sampleBytes": plan::sample_bytes(),
        });
        writeln!(self.out, "{header}")?;
        self.write_modules()
    }

    /// Writes all events since the last call, in the order of their times.
    pub(crate) fn write_new(&mut self) -> io::Result<()> {
        self.take_sums();
        let mut lines = std::mem::take(&mut self.lines);
        lines.append(&mut self.sums);
        self.take_marks(&mut lines);
        self.listener
            .drain(|event| lines.push(TimedLine { time: event.time, line: Line::Event(event) }));
        self.summary.lost = self.listener.lost();
        lines.sort_by_key(|line| line.time);
        for TimedLine { time, line } in lines.drain(..) {
            let since = self.since_last(time);
            match line {
                Line::Event(happened) => self.write_event(since, happened)?,
                Line::Mark(words) => writeln!(self.out, "{}", json!(["!", since, words]))?,
                Line::Sums(
                    HeapCounters { allocated_bytes, allocations, freed_bytes, frees, .. },
                    resident,
                ) => writeln!(
                    self.out,
                    "[\"=\",{since},{allocated_bytes},{allocations},{freed_bytes},{frees},{resident}]"
                )?,
            }
            // Keeps the interval between sums while many lines are written.
            if self.sums_taken.elapsed() >= self.interval {
                self.take_sums();
            }
        }
        self.lines = lines;
        if self.flushed.elapsed() >= FLUSH {
            self.write_modules()?;
            self.out.flush()?;
            self.flushed = Instant::now();
        }
        Ok(())
    }

    /// Writes the remaining events and the last line.
    pub(crate) fn finish(mut self) -> io::Result<RecordingSummary> {
        self.write_new()?;
        // Writes the sums that the first call has taken.
        self.write_new()?;
        self.write_modules()?;
        let RecordingSummary { events, lost } = self.summary;
        writeln!(self.out, "{}", json!({ "end": true, "events": events, "lost": lost }))?;
        self.out.finish()?.flush()?;
        Ok(self.summary)
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
                if site::site(block.site).is_some_and(|site| u32::from(site.on_alloc) == OWN) {
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
            Event::Freed { address, .. } => {
                // The block was allocated before the recording.
                if !self.live.remove(&address) {
                    return self.skip_line(since);
                }
                self.write_thread(thread)?;
                writeln!(self.out, "[\"-\",{since},{address},{thread}]")?;
            }
        }
        self.summary.events += 1;
        Ok(())
    }

    /// Writes a site, with its thread and scopes, when it first occurs.
    fn write_site(&mut self, id: site::SiteId) -> io::Result<()> {
        if !self.sites.insert(id.number()) {
            return Ok(());
        }
        let Some(site) = site::site(id) else { return Ok(()) };
        self.write_thread(site.thread)?;
        self.write_scopes(site.scope)?;
        let stack: Vec<_> = site::frames(site.stack).map(|frame| format!("{frame:x}")).collect();
        writeln!(self.out, "{}", json!(["site", id.number(), site.thread, stack, site.scope]))
    }

    /// Writes the scopes up to this one. The scopes around it have smaller numbers.
    fn write_scopes(&mut self, scope: u16) -> io::Result<()> {
        if usize::from(scope) > self.scopes {
            let all = all_scopes();
            for (around, name) in all.iter().skip(self.scopes) {
                writeln!(self.out, "{}", json!(["scope", around, name]))?;
            }
            self.scopes = all.len();
        }
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

    fn write_modules(&mut self) -> io::Result<()> {
        let modules = sys::modules();
        if modules.len() != self.modules {
            self.modules = modules.len();
            for module in modules {
                let base = format!("{:x}", module.bias);
                let segments: Vec<_> =
                    module.segments.iter().map(|(from, to)| format!("{from:x}-{to:x}")).collect();
                let line = json!(["module", module.path, module.build_id, base, segments]);
                writeln!(self.out, "{line}")?;
            }
        }
        Ok(())
    }

    fn take_marks(&mut self, lines: &mut Vec<TimedLine>) {
        lines.extend(self.marks.take().into_iter().map(|mark| {
            let ago = u64::try_from(mark.time.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let time = sys::monotonic().saturating_sub(ago);
            TimedLine { time, line: Line::Mark(mark.words) }
        }));
    }

    /// Takes the exact sums of this moment.
    fn take_sums(&mut self) {
        self.sums_taken = Instant::now();
        if let Some(sums) = heap_counters() {
            let resident = sys::resident_bytes().unwrap_or(0);
            let line = Line::Sums(sums, resident);
            self.sums.push(TimedLine { time: sys::monotonic(), line });
        }
    }
}

/// A line of the file, with its time in nanoseconds of the monotonic clock.
struct TimedLine {
    time: u64,
    line: Line,
}

/// The content of a line.
enum Line {
    Event(TimedEvent),
    /// A mark of the program, with its text.
    Mark(Cow<'static, str>),
    /// The heap counters, and the resident bytes of the process.
    Sums(HeapCounters, u64),
}
