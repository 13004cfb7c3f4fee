//! Records allocations over time: exact sums at a steady rate, and a sample of single blocks.
//!
//! One thread reads the events of all others from a ring and writes them to a file. Every sampled
//! block has its allocation and its end in the file, whichever threads they happen on. Allocating
//! threads never wait for the writer.

mod writer;

use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fmt, io};

use memreport::__private::as_own;

use crate::hook::start::{StartError, start, stop};
use crate::mem::signals::at_exit;
use crate::mem::sys;
use crate::sample::options::{Mode, Options};
use writer::Writer;

/// The environment variable with the name of a file to record into from the start of the program.
///
/// `about-memory record` sets it. `%p` in the name is replaced by the process id. A name without
/// `%p` gets `.PID` at its end, because child processes inherit the variable.
pub const VARIABLE: &str = "MEMREPORT_RECORD";

/// The settings of a recording.
///
/// ```
/// dmd::global_allocator!();
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let file = std::env::temp_dir().join(format!("dmd-doc-{}.rec.gz", std::process::id()));
/// let recording = dmd::record::Recorder::default()
///     .options("--mode=profile --sample-bytes=64K".parse()?)
///     .start(&file)?;
/// let pages = vec![0_u8; 10_000_000];
/// memreport::mark("the pages are there");
/// drop(pages);
/// let recorded = recording.finish()?;
/// assert!(recorded.events > 0 && recorded.lost == 0);
/// # std::fs::remove_file(file)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is recorded until `start`"]
pub struct Recorder {
    options: Options,
    every: Duration,
}

impl Default for Recorder {
    fn default() -> Self {
        Recorder {
            options: Options::default().mode(Mode::Profile),
            every: Duration::from_millis(20),
        }
    }
}

impl Recorder {
    /// Sets which blocks are recorded, and with which stacks.
    ///
    /// The default is a sample of one byte in 512 KiB. A mode that tracks all blocks records all of
    /// them. A program that allocates millions of blocks a second then loses events, which
    /// [`RecordingSummary::lost`] counts.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sets the interval between exact sums, at least 1 ms. The default is 20 ms.
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every.max(Duration::from_millis(1));
        self
    }

    /// Starts recording into a file, which is gzipped whatever its name.
    ///
    /// The file is new and only its user may read it. It replaces a file of this name.
    ///
    /// # Errors
    ///
    /// If tracking cannot start, or the file or the thread cannot be created.
    pub fn start(self, path: impl AsRef<Path>) -> Result<Recording, RecordError> {
        let path = path.as_ref();
        let failed = |error| RecordError::file(path, error);
        let mut writer = as_own(|| Writer::create(path, self.every)).map_err(failed)?;
        start(self.options).map_err(RecordError::Start)?;
        as_own(|| writer.write_header().and_then(|()| writer.write_new())).map_err(failed)?;
        let (stop, stopped) = mpsc::channel::<()>();
        let every = self.every;
        let thread = as_own(|| {
            std::thread::Builder::new().name("dmd-record".into()).spawn(move || {
                as_own(|| {
                    let mut writer = writer;
                    while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                        writer.write_new()?;
                    }
                    writer.finish()
                })
            })
        });
        let thread = thread.map_err(failed)?;
        let pid = std::process::id();
        Ok(Recording { path: path.to_owned(), pid, stop: Some(stop), thread: Some(thread) })
    }
}

/// A recording in progress, until it is finished or dropped.
#[derive(Debug)]
#[must_use = "dropping it ends the recording"]
pub struct Recording {
    path: PathBuf,
    /// The process that records. A forked child has a copy of this value, but no writing thread.
    pid: u32,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<io::Result<RecordingSummary>>>,
}

/// The number of events in a finished recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordingSummary {
    /// The number of allocations and frees in the file.
    pub events: u64,
    /// The number of events that were lost because they came faster than they were written.
    pub lost: u64,
}

impl Recording {
    /// Ends the recording and stops tracking. Tracked blocks stay in the table.
    ///
    /// # Errors
    ///
    /// If the file could not be written, at any time during the recording.
    pub fn finish(mut self) -> Result<RecordingSummary, RecordError> {
        self.end()
    }

    fn end(&mut self) -> Result<RecordingSummary, RecordError> {
        if self.pid != std::process::id() {
            // The thread is not in this process: joining it would hang, and so could its channel.
            let _ = ManuallyDrop::new((self.stop.take(), self.thread.take()));
            return Ok(RecordingSummary::default());
        }
        let Some(thread) = self.thread.take() else { return Ok(RecordingSummary::default()) };
        stop();
        drop(self.stop.take());
        let recorded =
            thread.join().unwrap_or_else(|_| Err(io::Error::other("the recorder panicked")));
        recorded.map_err(|error| RecordError::file(&self.path, error))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // Errors are only returned by `finish`.
        let _ = self.end();
    }
}

/// A recording failed, or is incomplete.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecordError {
    /// Tracking could not start.
    Start(StartError),
    /// The file could not be written.
    File(PathBuf, io::Error),
}

impl RecordError {
    fn file(path: &Path, error: io::Error) -> Self {
        RecordError::File(path.to_owned(), error)
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::Start(error) => write!(out, "{error}"),
            RecordError::File(path, error) => write!(out, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for RecordError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RecordError::Start(error) => Some(error),
            RecordError::File(_, error) => Some(error),
        }
    }
}

/// The recording that `$MEMREPORT_RECORD` started.
static FROM_START: std::sync::Mutex<Option<Recording>> = std::sync::Mutex::new(None);

/// Starts a recording if the environment variable is set. Runs before `main`, on the main thread.
#[expect(
    clippy::print_stderr,
    reason = "set in the environment, and there is no caller to return an error to"
)]
pub(crate) fn start_from_variable() {
    let Some(path) = sys::variable(VARIABLE) else { return };
    let path = path_of(&path.to_string_lossy(), std::process::id());
    let recorder = match crate::sample::variable::options() {
        Some(Ok(options)) => Recorder::default().options(options),
        _ => Recorder::default(),
    };
    match recorder.start(&path) {
        Ok(recording) => {
            if let Ok(mut place) = FROM_START.lock() {
                *place = Some(recording);
            }
            at_exit(finish_at_exit);
        }
        Err(error) => eprintln!("DMD[{}] records nothing: {error}", std::process::id()),
    }
}

/// Returns the path of a process's own recording.
fn path_of(pattern: &str, pid: u32) -> String {
    if pattern.contains("%p") {
        pattern.replace("%p", &pid.to_string())
    } else {
        format!("{pattern}.{pid}")
    }
}

extern "C" fn finish_at_exit() {
    let recording = FROM_START.lock().ok().and_then(|mut place| place.take());
    drop(recording);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_process_has_a_path_of_its_own() {
        assert_eq!(path_of("a/%p.rec.gz", 7), "a/7.rec.gz");
        assert_eq!(path_of("a/leak.rec", 7), "a/leak.rec.7");
    }
}
