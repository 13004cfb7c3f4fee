//! The file of a recording: lines of JSON in one gzip member, written while the program runs. If it is killed, what was
//! written is there.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use memreport::__private::{OWN, marks_from};
use memreport::heap_counters;
use serde_json::json;

use super::Recorded;
use crate::track::events::{Event, Happened, Listener};
use crate::track::{plan, sites, sys, thread};

/// How often what was written is made sure to be in the file.
const FLUSH: Duration = Duration::from_secs(1);

/// Writes a recording.
pub(super) struct Writer {
    out: GzEncoder<BufWriter<File>>,
    listener: Listener,
    /// The time of the last line, in nanoseconds of the monotonic clock.
    last: u64,
    sites: HashSet<u32>,
    threads: HashSet<u32>,
    modules: usize,
    next_mark: u64,
    flushed: Instant,
    recorded: Recorded,
    /// Blocks that live and were born in this recording.
    live: HashSet<usize>,
}

impl Writer {
    /// From here on, blocks are heard of.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let out = GzEncoder::new(BufWriter::new(File::create(path)?), Compression::fast());
        let (_, next_mark) = marks_from(u64::MAX);
        Ok(Writer {
            out,
            listener: Listener::new(),
            last: sys::monotonic(),
            sites: HashSet::new(),
            threads: HashSet::new(),
            modules: 0,
            next_mark,
            flushed: Instant::now(),
            recorded: Recorded::default(),
            live: HashSet::new(),
        })
    }

    /// Once it is known what is tracked.
    pub(super) fn begin(&mut self) -> io::Result<()> {
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
        self.write_modules()?;
        self.write_sums()
    }

    /// Writes what has happened since the last time.
    pub(super) fn note(&mut self) -> io::Result<()> {
        self.write_marks()?;
        let mut events = Vec::new();
        self.listener.drain(|event| events.push(event));
        self.recorded.lost = self.listener.lost();
        events.sort_by_key(|event| event.time);
        for event in events {
            self.write_event(event)?;
        }
        self.write_sums()?;
        if self.flushed.elapsed() >= FLUSH {
            self.write_modules()?;
            self.out.flush()?;
            self.flushed = Instant::now();
        }
        Ok(())
    }

    pub(super) fn end(mut self) -> io::Result<Recorded> {
        self.note()?;
        self.write_modules()?;
        let Recorded { events, lost } = self.recorded;
        writeln!(self.out, "{}", json!({ "end": true, "events": events, "lost": lost }))?;
        self.out.finish()?.flush()?;
        Ok(self.recorded)
    }

    /// Microseconds since the last line.
    fn since_last(&mut self, time: u64) -> u64 {
        let since = time.saturating_sub(self.last) / 1000;
        self.last += since * 1000;
        since
    }

    fn write_event(&mut self, happened: Happened) -> io::Result<()> {
        let thread = happened.thread;
        match happened.event {
            Event::Born { address, block } => {
                let site = block.site.number();
                // The tracker's own are nobody's business.
                if sites::site(block.site).is_some_and(|site| u32::from(site.on_alloc) == OWN) {
                    return Ok(());
                }
                self.live.insert(address);
                self.write_site(block.site)?;
                let since = self.since_last(happened.time);
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
                    return Ok(());
                }
                self.write_thread(thread)?;
                let since = self.since_last(happened.time);
                writeln!(self.out, "[\"-\",{since},{address},{thread}]")?;
            }
        }
        self.recorded.events += 1;
        Ok(())
    }

    /// The site and its thread, when they are met.
    fn write_site(&mut self, id: sites::SiteId) -> io::Result<()> {
        if !self.sites.insert(id.number()) {
            return Ok(());
        }
        let Some(site) = sites::site(id) else { return Ok(()) };
        self.write_thread(site.thread)?;
        let stack: Vec<_> = sites::frames(site.stack).map(|frame| format!("{frame:x}")).collect();
        writeln!(self.out, "{}", json!(["site", id.number(), site.thread, stack]))
    }

    fn write_thread(&mut self, number: u32) -> io::Result<()> {
        if !self.threads.insert(number) {
            return Ok(());
        }
        let id = thread::met().find(|(met, _)| *met == number).map_or(0, |(_, id)| id);
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

    fn write_marks(&mut self) -> io::Result<()> {
        let (marks, next) = marks_from(self.next_mark);
        self.next_mark = next;
        for mark in marks {
            let ago = u64::try_from(mark.time.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let since = self.since_last(sys::monotonic().saturating_sub(ago));
            writeln!(self.out, "{}", json!(["!", since, mark.words]))?;
        }
        Ok(())
    }

    /// The exact sums at this moment.
    fn write_sums(&mut self) -> io::Result<()> {
        let Some(sums) = heap_counters() else { return Ok(()) };
        let since = self.since_last(sys::monotonic());
        let resident = sys::resident().unwrap_or(0);
        writeln!(
            self.out,
            "[\"=\",{since},{},{},{},{},{resident}]",
            sums.allocated_bytes, sums.allocations, sums.freed_bytes, sums.frees
        )
    }
}
