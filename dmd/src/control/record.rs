//! Records what a program allocates and gives back over time: exact sums at a steady rate, and a balanced sample of its blocks.
//!
//! A thread takes the events of all others from a ring and writes them to a file, in which every sampled block has its epoch and
//! its end, on whichever threads they happen. Allocating threads never wait for it.

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
use crate::sample::options::{Mode, Options};
use writer::Writer;

/// The environment variable that names the file which a program is to record into from its start on: `about-memory record`
/// sets it. `%p` in it is the process's number.
pub const VARIABLE: &str = "MEMREPORT_RECORD";

/// What a recording is to hold.
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
#[must_use = "nothing is recorded until it is started"]
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
    /// Which blocks are recorded, and with which stacks: a sample of one byte in 512 KiB, unless said otherwise. With a mode that
    /// keeps all blocks, all are recorded; a program that allocates millions a second then loses some events, which is said.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// How often the sums are noted: every 20 milliseconds, unless said otherwise.
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every.max(Duration::from_millis(1));
        self
    }

    /// Begins to record into a file, gzipped whatever its name.
    ///
    /// # Errors
    ///
    /// When tracking cannot start, and those of making the file and the thread.
    pub fn start(self, path: impl AsRef<Path>) -> Result<Recording, RecordError> {
        let path = path.as_ref();
        let failed = |error| RecordError::file(path, error);
        let mut writer = as_own(|| Writer::create(path, self.every)).map_err(failed)?;
        start(self.options).map_err(RecordError::Start)?;
        as_own(|| writer.begin().and_then(|()| writer.note())).map_err(failed)?;
        let (stop, stopped) = mpsc::channel::<()>();
        let every = self.every;
        let thread = as_own(|| {
            std::thread::Builder::new().name("dmd-record".into()).spawn(move || {
                as_own(|| {
                    let mut writer = writer;
                    while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                        writer.note()?;
                    }
                    writer.end()
                })
            })
        });
        let thread = thread.map_err(failed)?;
        let pid = std::process::id();
        Ok(Recording { path: path.to_owned(), pid, stop: Some(stop), thread: Some(thread) })
    }
}

/// A recording that goes on until it is finished or dropped.
#[derive(Debug)]
#[must_use = "dropping it ends the recording"]
pub struct Recording {
    path: PathBuf,
    /// The process that records: a forked child has a copy of this value, and nobody who writes.
    pid: u32,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<io::Result<Recorded>>>,
}

/// What a recording came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// Births and ends of blocks in the file.
    pub events: u64,
    /// Those that came faster than they could be written.
    pub lost: u64,
}

impl Recording {
    /// Ends the recording, and tracking with it: blocks that are known stay known.
    ///
    /// # Errors
    ///
    /// Those of writing the file, also of long ago.
    pub fn finish(mut self) -> Result<Recorded, RecordError> {
        self.end()
    }

    fn end(&mut self) -> Result<Recorded, RecordError> {
        if self.pid != std::process::id() {
            // The thread is not in this process: waiting for it would never end, nor is its channel to be touched.
            let _ = ManuallyDrop::new((self.stop.take(), self.thread.take()));
            return Ok(Recorded::default());
        }
        let Some(thread) = self.thread.take() else { return Ok(Recorded::default()) };
        stop();
        drop(self.stop.take());
        let recorded =
            thread.join().unwrap_or_else(|_| Err(io::Error::other("the recorder panicked")));
        recorded.map_err(|error| RecordError::file(&self.path, error))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // Who wants to know of errors calls `finish`.
        let _ = self.end();
    }
}

/// Why nothing, or not all, was recorded.
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

/// The recording that `$MEMREPORT_RECORD` asked for.
static FROM_START: std::sync::Mutex<Option<Recording>> = std::sync::Mutex::new(None);

/// Begins a recording if the environment asks for one. Before `main`, on the main thread.
#[expect(
    clippy::print_stderr,
    reason = "asked for in the environment, and nobody else is there to be told"
)]
pub(crate) fn begin_if_asked() {
    let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) else { return };
    let path = path.to_string_lossy().replace("%p", &std::process::id().to_string());
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

extern "C" fn finish_at_exit() {
    let recording = FROM_START.lock().ok().and_then(|mut place| place.take());
    drop(recording);
}
