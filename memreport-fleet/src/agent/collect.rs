//! Takes snapshots of the served programs of a host, at a bounded cost.

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use about_memory::Failure;
use about_memory::input::live::connection::Report;
use about_memory::input::live::{Connection, LiveError, Program, find, find_in};
use memreport::snapshot::read;

use super::batch::Pending;
use super::metrics::Metrics;
use super::spool::{Spool, is_full_disk};
use super::{Options, process};
use crate::gather::Snapshot;
use crate::resource::Resource;

/// A program by its number and its start, which no other program has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Identity {
    pid: u32,
    start: Option<u64>,
}

/// The facts about a program from earlier rounds.
#[derive(Debug)]
struct Known {
    resource: Resource,
    /// No snapshot before this time.
    next: Instant,
    /// The number of snapshots.
    count: u32,
    /// The number of failures one after the other.
    failures: u32,
    /// True if it has no dump: no tracker runs.
    has_no_dump: bool,
}

/// The most rounds that a program without an answer is left out, as a power of two.
const MOST_PAUSE: u32 = 6;

/// Takes snapshots, round by round.
#[derive(Debug)]
pub(super) struct Collector<'o> {
    options: &'o Options,
    known: HashMap<Identity, Known>,
    /// Snapshots that found no space on the disk.
    held: Vec<Pending>,
}

impl<'o> Collector<'o> {
    pub(super) fn new(options: &'o Options) -> Self {
        Collector { options, known: HashMap::new(), held: Vec::new() }
    }

    /// Takes a snapshot of each program whose turn it is, until `stop` is set: programs that do not
    /// answer would delay the last batch. Takes none while the spool or the disk is full: what was
    /// taken is never dropped.
    pub(super) fn round(
        &mut self,
        spool: &Spool,
        metrics: &Metrics,
        stop: &AtomicBool,
        notes: &mut dyn Write,
    ) -> Result<(), Failure> {
        self.flush(spool, metrics, notes)?;
        let programs = self.programs();
        metrics.programs.set(programs.len() as u64);
        let identity =
            |program: &Program| Identity { pid: program.pid, start: process::start(program.pid) };
        let identities: Vec<Identity> = programs.iter().map(identity).collect();
        self.known.retain(|known, _| identities.contains(known));
        for (program, identity) in programs.into_iter().zip(identities) {
            if stop.load(Ordering::Acquire) {
                return Ok(());
            }
            if !self.held.is_empty() || spool.is_full() {
                metrics.skipped_full.add(1);
                return Ok(());
            }
            if let Some(pending) = self.take(&program, identity, metrics, notes)? {
                self.held.push(pending);
                self.flush(spool, metrics, notes)?;
            }
        }
        Ok(())
    }

    fn programs(&self) -> Vec<Program> {
        match &self.options.sockets[..] {
            [] => find(),
            folders => folders.iter().flat_map(|folder| find_in(folder)).collect(),
        }
    }

    /// Writes the snapshots that are in memory alone.
    pub(super) fn flush(
        &mut self,
        spool: &Spool,
        metrics: &Metrics,
        notes: &mut dyn Write,
    ) -> Result<(), Failure> {
        while let Some(pending) = self.held.last() {
            match spool.add_pending(&pending.name(), &pending.to_bytes()) {
                Ok(()) => {
                    metrics.snapshots.add(1);
                    if self.options.verbose {
                        writeln!(notes, "taken {}", pending.snapshot.id)?;
                    }
                    self.held.pop();
                }
                Err(error) if is_full_disk(&error) => {
                    writeln!(notes, "the disk is full; a snapshot waits in memory")?;
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Takes a snapshot of a program, if it is its turn and it answers.
    fn take(
        &mut self,
        program: &Program,
        identity: Identity,
        metrics: &Metrics,
        notes: &mut dyn Write,
    ) -> Result<Option<Pending>, Failure> {
        let options = self.options;
        let pid = program.pid;
        let known = self.known.entry(identity).or_insert_with(|| Known {
            resource: process::resource(pid),
            next: Instant::now(),
            count: 0,
            failures: 0,
            has_no_dump: false,
        });
        if Instant::now() < known.next {
            metrics.skipped_cost.add(1);
            return Ok(None);
        }
        let begin = Instant::now();
        let answer = known.ask(program, options);
        let cost = begin.elapsed();
        metrics.waited_us.add(micros(cost));
        // A program that took long is asked less often.
        known.next = begin + cost.div_f64(options.most_share.clamp(1e-6, 1.0));
        match answer {
            Ok(report) => {
                known.count = known.count.wrapping_add(1);
                known.failures = 0;
                metrics.dumps.add(u64::from(report.dump.is_some()));
                let pending = known.pending(report, pid, cost, &options.resource);
                if pending.is_none() {
                    metrics.defective.add(1);
                }
                Ok(pending)
            }
            Err(error) => {
                known.failures = (known.failures + 1).min(MOST_PAUSE);
                let pause = options.every * 2_u32.pow(known.failures - 1);
                known.next = known.next.max(begin + pause);
                metrics.failed.add(1);
                writeln!(notes, "{error}")?;
                Ok(None)
            }
        }
    }
}

impl Known {
    /// Requests a report, and a dump if it is time for one and the program has it.
    fn ask(&mut self, program: &Program, options: &Options) -> Result<Report, LiveError> {
        let connection = Connection::new(program.clone(), options.timeout);
        let connection = connection.anonymize(options.anonymize);
        let is_time = options.dump_every > 0 && self.count.is_multiple_of(options.dump_every);
        if is_time && !self.has_no_dump {
            match connection.report(true) {
                Err(LiveError::Refused(..)) => self.has_no_dump = true,
                answer => return answer,
            }
        } else if is_time {
            // A tracker may have been turned on meanwhile.
            self.has_no_dump = false;
        }
        connection.report(false)
    }

    /// Returns the snapshot of an answer; `None` if its report cannot be read.
    fn pending(
        &self,
        report: Report,
        pid: u32,
        cost: Duration,
        common: &Resource,
    ) -> Option<Pending> {
        let mut nothing = Nothing;
        let header =
            read::read(&mut &report.report[..], read::Options::default(), &mut nothing).ok()?;
        let mut resource = self.resource.clone();
        for (key, value) in common.iter() {
            resource.set_default(key, value);
        }
        if let Some(process) = &header.own.process {
            resource.set_default("service.name", &process.name);
        }
        resource.set("process.pid", &pid.to_string());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let time_ms = header.own.time_ms.unwrap_or(now);
        let mut snapshot = Snapshot::of_file(&report.report, time_ms, resource);
        snapshot.cost_us = Some(micros(cost));
        Some(Pending { snapshot, report: report.report, dump: report.dump })
    }
}

/// A sink that keeps nothing.
struct Nothing;

impl read::Sink for Nothing {
    fn restart(&mut self) {}

    fn report(
        &mut self,
        _: &read::Entry<'_>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(())
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn no_program_is_asked_after_the_signal_to_stop() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join(format!("memreport-{}.sock", std::process::id()));
        // It never answers.
        let _program = UnixListener::bind(socket).expect("a socket");
        let options = Options {
            every: Duration::from_millis(1),
            most_share: 1.0,
            timeout: Duration::from_millis(50),
            dump_every: 0,
            batch: Duration::from_secs(60),
            spool: folder.path().join("spool"),
            spool_limit: 1 << 20,
            metrics: None,
            resource: Resource::default(),
            sockets: vec![folder.path().to_owned()],
            anonymize: false,
            verbose: false,
            rounds: None,
        };
        let spool = Spool::open(&options.spool, options.spool_limit).expect("it is new");
        for (is_stopped, failures) in [(true, 0), (false, 1)] {
            let (metrics, stop) = (Metrics::default(), AtomicBool::new(is_stopped));
            let mut collector = Collector::new(&options);
            collector.round(&spool, &metrics, &stop, &mut Vec::new()).expect("a spool");
            assert_eq!((metrics.programs.get(), metrics.failed.get()), (1, failures));
        }
    }
}
