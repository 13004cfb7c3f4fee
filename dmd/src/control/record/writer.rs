//! The file of a recording: lines of JSON in one gzip member, written while the program runs. If it is killed, what was
//! written is there.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use memreport::__private::{MarkReader, OWN, all_scopes};
use memreport::{HeapCounters, heap_counters};
use serde_json::json;

use super::Recorded;
use crate::event::events::{Event, Listener, TimedEvent};
use crate::mem::sys;
use crate::sample::plan;
use crate::stack::{site, thread};

/// How often what was written is made sure to be in the file.
const FLUSH: Duration = Duration::from_secs(1);

/// Writes a recording.
pub(crate) struct Writer {
    out: GzEncoder<BufWriter<File>>,
    listener: Listener,
    /// The time of the last line, in nanoseconds of the monotonic clock.
    last: u64,
    sites: HashSet<u32>,
    threads: HashSet<u32>,
    /// How many modules and scopes are written.
    modules: usize,
    scopes: usize,
    marks: MarkReader,
    /// How often the sums are taken; when they were taken last; those that are not written yet.
    every: Duration,
    sums_taken: Instant,
    sums: Vec<(u64, Line)>,
    /// Empty between two notes: kept, so that nothing is allocated where little happens.
    lines: Vec<(u64, Line)>,
    flushed: Instant,
    recorded: Recorded,
    /// Blocks that live and were born in this recording.
    live: HashSet<usize>,
}

impl Writer {
    /// From here on, blocks are heard of.
    pub(crate) fn create(path: &Path, every: Duration) -> io::Result<Self> {
        let out = GzEncoder::new(BufWriter::new(File::create(path)?), Compression::fast());
        Ok(Writer {
            out,
            listener: Listener::new(),
            last: sys::monotonic(),
            sites: HashSet::new(),
            threads: HashSet::new(),
            modules: 0,
            scopes: 0,
            marks: MarkReader::default(),
            every,
            sums_taken: Instant::now(),
            sums: Vec::new(),
            lines: Vec::new(),
            flushed: Instant::now(),
            recorded: Recorded::default(),
            live: HashSet::new(),
        })
    }

    /// Once it is known what is tracked.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
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

    /// Writes what has happened since the last time, in its order.
    pub(crate) fn note(&mut self) -> io::Result<()> {
        self.take_sums();
        let mut lines = std::mem::take(&mut self.lines);
        lines.append(&mut self.sums);
        self.take_marks(&mut lines);
        self.listener.drain(|event| lines.push((event.time, Line::Event(event))));
        self.recorded.lost = self.listener.lost();
        lines.sort_by_key(|(time, _)| *time);
        for (time, line) in lines.drain(..) {
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
            // Many lines take long to write, and the sums are to be steady.
            if self.sums_taken.elapsed() >= self.every {
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

    pub(crate) fn end(mut self) -> io::Result<Recorded> {
        self.note()?;
        // Those that were taken while it was written.
        self.note()?;
        self.write_modules()?;
        let Recorded { events, lost } = self.recorded;
        writeln!(self.out, "{}", json!({ "end": true, "events": events, "lost": lost }))?;
        self.out.finish()?.flush()?;
        Ok(self.recorded)
    }

    /// A line less: its time is the next one's.
    #[expect(clippy::unnecessary_wraps, reason = "ends functions that write")]
    fn mark_unsampled(&mut self, since: u64) -> io::Result<()> {
        self.last -= since * 1000;
        Ok(())
    }

    /// Microseconds since the last line.
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
                // The tracker's own are nobody's business.
                if site::site(block.site).is_some_and(|site| u32::from(site.on_alloc) == OWN) {
                    return self.mark_unsampled(since);
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
                // One from before is not of this recording, and its end would have no beginning.
                if !self.live.remove(&address) {
                    return self.mark_unsampled(since);
                }
                self.write_thread(thread)?;
                writeln!(self.out, "[\"-\",{since},{address},{thread}]")?;
            }
        }
        self.recorded.events += 1;
        Ok(())
    }

    /// The site and its thread, when they are met.
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

    /// The scopes up to this one; those around it have smaller numbers.
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

    fn take_marks(&mut self, lines: &mut Vec<(u64, Line)>) {
        lines.extend(self.marks.take().into_iter().map(|mark| {
            let ago = u64::try_from(mark.time.elapsed().as_nanos()).unwrap_or(u64::MAX);
            (sys::monotonic().saturating_sub(ago), Line::Mark(mark.words))
        }));
    }

    /// The exact sums at this moment.
    fn take_sums(&mut self) {
        self.sums_taken = Instant::now();
        if let Some(sums) = heap_counters() {
            let resident = sys::resident_bytes().unwrap_or(0);
            self.sums.push((sys::monotonic(), Line::Sums(sums, resident)));
        }
    }
}

/// What is to be written, with its time.
enum Line {
    Event(TimedEvent),
    Mark(Cow<'static, str>),
    Sums(HeapCounters, u64),
}
