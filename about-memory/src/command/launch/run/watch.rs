//! Starts the program of a run, and collects the snapshots that it saves.

use super::RunArgs;
use super::folder::{Folder, keep};
use super::listen::{self, Event};
use super::outcome::{Ran, SavedSnapshot};
use super::peaks;
use super::peaks::Peaks;
use crate::command::launch::error::RunError;
use crate::command::launch::tracking::Tracking;
use crate::input::live::{Connection, program};
use crate::input::progress::Progress;
use crate::report::amount::Amount;
use crate::report::numbers::{self, Bytes, Unit};
use memreport::__private::ANONYMIZE_VARIABLE;
use signal_hook::low_level::signal_name;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// A run before its start.
pub(crate) struct Setup {
    folder: Folder,
    /// The private folder of the socket.
    socket_folder: PathBuf,
    listener: UnixListener,
}

impl Setup {
    pub(crate) fn open(output: Option<&Path>) -> Result<Self, RunError> {
        let private = tempfile::Builder::new()
            .prefix("about-memory-")
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir();
        let private = private.map_err(|error| RunError::Folder(std::env::temp_dir(), error))?;
        let socket_folder = private.path().to_owned();
        let bad = |path: &Path| {
            let path = path.to_owned();
            move |error| RunError::Folder(path, error)
        };
        if let Some(output) = output {
            fs::create_dir_all(output).map_err(bad(output))?;
        }
        let listener = UnixListener::bind(socket_folder.join(dmd::run::SOCKET))
            .map_err(bad(&socket_folder))?;
        let path = output.map_or_else(|| socket_folder.clone(), Path::to_owned);
        Ok(Setup { folder: Folder::new(path, private), socket_folder, listener })
    }

    /// Runs the program to its end.
    pub(crate) fn run(
        self,
        args: &RunArgs,
        program: &Path,
        tracking: Tracking,
    ) -> Result<Ran, RunError> {
        let (sender, events) = mpsc::channel();
        listen::accept(self.listener, sender.clone());
        listen::signals(sender.clone())
            .map_err(|error| RunError::Start(program.to_owned(), error))?;
        let mut command = Command::new(program);
        command.args(&args.command[1..]).env(dmd::run::VARIABLE, &self.socket_folder);
        if std::env::var_os("DMD").is_none() {
            command.env("DMD", args.surroundings.dmd.unwrap_or("1"));
        }
        let surround = args.surroundings.apply(&mut command, args.options.display.json);
        surround.map_err(|error| RunError::Start(program.to_owned(), error))?;
        if args.options.at_peak && std::env::var_os(dmd::record::VARIABLE).is_none() {
            command.env(dmd::record::VARIABLE, peaks::name_in(&self.socket_folder));
        }
        if args.options.anonymize {
            // The program's own snapshots, which are copied, are anonymized as well.
            command.env(ANONYMIZE_VARIABLE, "yes");
        }
        tracking.apply(&mut command);
        let started = Instant::now();
        let mut child =
            command.spawn().map_err(|error| RunError::Start(program.to_owned(), error))?;
        let pid = child.id();
        thread::spawn(move || {
            let status = child.wait();
            // The receiver is gone only after an error.
            let _ = sender.send(Event::Ended(status));
        });
        let mut watch = Watch {
            args,
            tracking: &tracking,
            folder: &self.socket_folder,
            started,
            pid,
            processes: Vec::new(),
            snapshots: Vec::new(),
            notes: tracking.note().into_iter().collect(),
            highest: Vec::new(),
        };
        let status =
            watch.until_end(&events).map_err(|error| RunError::Start(program.to_owned(), error))?;
        let peaks =
            if args.options.at_peak { Peaks::read(&self.socket_folder) } else { Peaks::default() };
        watch.notes.extend(peaks.notes(&watch.highest));
        let Watch { notes, snapshots, .. } = watch;
        let mut ran =
            Ran { status, snapshots: Vec::new(), notes, folder: self.folder, peaks, tracking };
        for snapshot in snapshots {
            match keep(snapshot, &self.socket_folder, ran.folder.path()) {
                Ok(kept) => ran.snapshots.push(kept),
                Err(error) => ran.notes.push(error.to_string()),
            }
        }
        Ok(ran)
    }
}

struct Watch<'a> {
    args: &'a RunArgs,
    tracking: &'a Tracking,
    folder: &'a Path,
    started: Instant,
    /// The program's own process.
    pid: u32,
    /// The streams for requests to each of its processes.
    processes: Vec<UnixStream>,
    snapshots: Vec<SavedSnapshot>,
    notes: Vec<String>,
    /// The most allocated bytes that each process has seen.
    highest: Vec<(u32, u64)>,
}

/// The interval at which the program is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Returns the resident memory of a process in bytes.
fn resident(pid: u32) -> Option<u64> {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages.saturating_mul(rustix::param::page_size() as u64))
}

fn megabytes(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "printed with two decimals")]
    let amount = Amount::Number(bytes as f64);
    numbers::amount(&amount, Unit::Bytes, Bytes::Mb)
}

/// The time to wait for messages after the program's end.
const DRAIN_TIME: Duration = Duration::from_millis(100);

impl Watch<'_> {
    fn until_end(&mut self, events: &Receiver<Event>) -> io::Result<ExitStatus> {
        let mut next = self.args.options.every.map(|every| self.started + every);
        let mut ended = None;
        // On a terminal, the program's own output has the last line.
        let step = (!io::stdout().is_terminal()).then(|| Progress::start("running", None));
        loop {
            let timeout = match (&ended, next) {
                (Some(_), _) => DRAIN_TIME,
                (None, Some(next)) => next.saturating_duration_since(Instant::now()).min(LOOK),
                (None, None) => LOOK,
            };
            if let Some(step) = step.as_ref().filter(|step| step.is_shown()) {
                step.set_words(self.words());
            }
            match events.recv_timeout(timeout) {
                Ok(Event::Ended(status)) => ended = Some(status),
                Ok(event) => self.handle(event),
                Err(RecvTimeoutError::Timeout) if ended.is_none() => {
                    if let (Some(time), Some(every)) = (&mut next, self.args.options.every)
                        && *time <= Instant::now()
                    {
                        *time = Instant::now() + every;
                        self.request("snapshot at an interval");
                    }
                }
                Err(_) => break,
            }
        }
        self.explain_silence(ended.as_ref().and_then(|ended| ended.as_ref().ok()));
        ended.unwrap_or_else(|| Err(io::Error::other("the program was lost")))
    }

    /// Returns how far the run is: the program's memory, and the snapshots.
    fn words(&self) -> String {
        let status = program(self.pid).map(|found| Connection::new(found, LOOK).status());
        let heap = status.ok().and_then(Result::ok).and_then(|status| status.heap_allocated);
        let heap = heap.map_or(String::new(), |bytes| format!(", heap {}", megabytes(bytes)));
        let resident = resident(self.pid)
            .map_or(String::new(), |bytes| format!(", resident {}", megabytes(bytes)));
        format!("running{heap}{resident}, {} snapshots", self.snapshots.len())
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Hello(mut requests) => {
                if self.args.options.at_peak {
                    let _ = requests.write_all(b"peak\n");
                }
                self.processes.push(requests);
            }
            Event::Saved(pid, name, moment) => self.saved(pid, &name, moment),
            Event::Failed(pid, message) => {
                self.notes.push(format!("process {pid} could not save a snapshot: {message}"));
            }
            Event::Highest(pid, bytes) => self.highest.push((pid, bytes)),
            Event::Signal(signal, program_too) if !program_too => send_signal(self.pid, signal),
            Event::Signal(..) | Event::Ended(_) => {}
        }
    }

    fn saved(&mut self, pid: u32, name: &str, moment: String) {
        // Take the file name alone: the program chose it.
        let Some(name) = Path::new(name).file_name() else { return };
        let report = self.folder.join(name);
        let dump = dmd::dump::beside(&report);
        self.snapshots.push(SavedSnapshot {
            pid,
            report,
            dump,
            moment,
            after: self.started.elapsed(),
        });
        self.remove_oldest(pid);
    }

    /// Removes the oldest snapshot of a process: a program that runs for days must not fill the
    /// disk. The one of the peak stays, if it was requested.
    fn remove_oldest(&mut self, pid: u32) {
        let most = usize::try_from(self.args.options.keep).unwrap_or(usize::MAX);
        if let Some(oldest) = oldest(&self.snapshots, pid, most, self.args.options.at_peak) {
            let oldest = self.snapshots.remove(oldest);
            // The file may be gone already.
            let _ = fs::remove_file(oldest.report);
            let _ = fs::remove_file(oldest.dump);
        }
    }

    /// Sends a request to every process that is connected.
    fn request(&mut self, request: &str) {
        let line = format!("{request}\n");
        self.processes.retain_mut(|requests| requests.write_all(line.as_bytes()).is_ok());
    }

    fn explain_silence(&mut self, status: Option<&ExitStatus>) {
        if self.snapshots.is_empty() {
            self.notes.push(if self.processes.is_empty() {
                self.tracking.silence().to_owned()
            } else {
                format!(
                    "the program left no snapshot: {}; use --every or --at-peak",
                    sudden_end(status.and_then(ExitStatus::signal))
                )
            });
        }
    }
}

/// Returns why a program ended without its exit handlers.
fn sudden_end(signal: Option<i32>) -> String {
    let Some(signal) = signal else {
        return "it ended by a call that runs no exit handlers (_exit), or became another program (exec) that cannot be tracked"
            .to_owned();
    };
    let name = signal_name(signal).map_or(String::new(), |name| format!(" ({name})"));
    format!("signal {signal}{name} ended it, which runs no exit handlers")
}

fn send_signal(pid: u32, signal: i32) {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) {
        // The process may have ended meanwhile.
        let _ = kill_process(pid, signal);
    }
}

/// Returns the place of the oldest snapshot of a process, if it has more than `most`. The highest
/// one near the peak counts, but stays if that is wanted.
fn oldest(snapshots: &[SavedSnapshot], pid: u32, most: usize, keeps_peak: bool) -> Option<usize> {
    let is_its = |snapshot: &SavedSnapshot| snapshot.pid == pid;
    let is_peak = |snapshot: &SavedSnapshot| is_its(snapshot) && snapshot.is_near_peak();
    // Each is higher than the ones before.
    let peak = snapshots.iter().rposition(is_peak).filter(|_| keeps_peak);
    let count = snapshots.iter().filter(|snapshot| is_its(snapshot)).count();
    let removable = |place: &usize| is_its(&snapshots[*place]) && Some(*place) != peak;
    (0..snapshots.len()).find(removable).filter(|_| count > most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_snapshot_of_a_process_goes_and_its_peak_stays() {
        let saved = |(pid, moment): (u32, &str)| SavedSnapshot {
            pid,
            report: PathBuf::new(),
            dump: PathBuf::new(),
            moment: moment.to_owned(),
            after: Duration::ZERO,
        };
        let peak = dmd::run::NEAR_PEAK;
        let one = [(2, "a"), (1, "b"), (1, "c")];
        let first_is_peak = [(1, peak), (1, "b"), (2, peak)];
        let two_peaks = [(1, peak), (1, peak), (1, "c")];
        for (snapshots, most, keeps_peak, expected) in [
            (one, 2, false, None),
            (one, 1, false, Some(1)),
            (first_is_peak, 1, false, Some(0)),
            // The peak of another process is later, and does not count.
            (first_is_peak, 1, true, Some(1)),
            (two_peaks, 2, true, Some(0)),
            (two_peaks, 3, true, None),
        ] {
            let found = oldest(&snapshots.map(saved), 1, most, keeps_peak);
            assert_eq!(found, expected, "{snapshots:?}, {most}, {keeps_peak}");
        }
    }
}
