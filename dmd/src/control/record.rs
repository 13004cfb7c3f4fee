//! Records allocations over time: exact sums at a steady rate, and a sample of single blocks.
//!
//! One thread reads the events of all others from a buffer and writes them to a file. Every sampled
//! block has its allocation and its end in the file, whichever threads they happen on.
//!
//! Nothing is lost: an allocating thread that finds the buffer full waits until the writer has made
//! room. A lossy recording ([`Recorder::lossy`]) loses events instead, and counts them.
//!
//! Read `thread` (the thread and what it may not do), `writer` (the lines of the file), `packed`
//! (the bytes of events), `members` (compression), `sums` (the heap counters without the tracker's
//! own work), `loaded` (modules) and `in_progress` (what recordings that overlap do to tracking).

mod thread;
mod writer;
mod packed;
mod members;
mod sums;
mod loaded;
mod in_progress;

use std::fs::File;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, io};

use memreport::__private::{PrivateFile, as_own, out_of_the_way};

use super::sudden_exit;
use crate::event::events;
use crate::hook::start::StartError;
use crate::mem::signals::at_exit;
use crate::mem::sys;
use crate::sample::options::{Mode, Options, Stacks};
use in_progress::Place;
use thread::{NotBegun, RecorderThread};
use writer::Settings;

/// The environment variable with the name of a file to record into from the start of the program.
///
/// `about-memory record` sets it. `%p` in the name is replaced by the process id. A name without
/// `%p` gets `.PID` at its end, because child processes inherit the variable. Words before the
/// name, each with a blank after it, choose more: `--lossy` makes the recording
/// [lossy](Recorder::lossy), `--free-stacks` gives it the [stacks of frees](Recorder::free_stacks).
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
    may_lose: bool,
    free_stacks: bool,
}

impl Default for Recorder {
    fn default() -> Self {
        Recorder {
            options: Options::default().mode(Mode::Profile),
            every: Duration::from_millis(20),
            may_lose: false,
            free_stacks: false,
        }
    }
}

impl Recorder {
    /// Sets which blocks are recorded, and with which stacks.
    ///
    /// The default is a sample of one byte in 512 KiB. A mode that tracks all blocks records all of
    /// them. A program that allocates millions of blocks a second then waits for the recording,
    /// unless it is [lossy](Self::lossy).
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sets the interval between exact sums, at least 1 ms. The default is 20 ms.
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every.max(Duration::from_millis(1));
        self
    }

    /// Sets whether allocating threads never wait, so that events are lost when they come faster
    /// than they are written. [`RecordingSummary::lost`] counts them. The default is `false`.
    pub fn lossy(mut self, may_lose: bool) -> Self {
        self.may_lose = may_lose;
        self
    }

    /// Sets whether the file has the stack of each free. The default is `false`: it has the thread.
    ///
    /// A free then costs as much as an allocation. Without effect if allocations have no stacks.
    pub fn free_stacks(mut self, has_them: bool) -> Self {
        self.free_stacks = has_them;
        self
    }

    /// Starts recording into a file, which is gzipped whatever its name.
    ///
    /// The file is new and only its user may read it. It replaces a file of this name.
    ///
    /// # Errors
    ///
    /// If tracking cannot start, the file or the thread cannot be created, or another recording of
    /// this process is in progress and neither is lossy.
    pub fn start(self, path: impl AsRef<Path>) -> Result<Recording, RecordError> {
        let Recorder { mut options, every, may_lose, free_stacks } = self;
        options.free_stacks = free_stacks;
        let path = path.as_ref();
        let failed = |error| RecordError::file(path, error);
        let is_sample = options.mode == Mode::Profile;
        let sample_bytes = is_sample.then_some(options.sample_bytes.get());
        let free_stacks = free_stacks && options.effective_stacks() != Stacks::None;
        let settings = Settings { sample_bytes, may_lose, free_stacks, interval: every };
        // The name appears at once: if the program is killed, the flushed lines are found.
        let file = as_own(|| PrivateFile::create(path)?.keep()).map_err(failed)?;
        let file = File::from(out_of_the_way(file.into()));
        let thread = as_own(|| RecorderThread::start(file, settings));
        let thread = thread.map_err(|error| match error {
            NotBegun::Busy => RecordError::Busy,
            NotBegun::Failed(error) => failed(error),
        })?;
        let place = match Place::begin(options) {
            Ok(place) => place,
            Err(error) => {
                let _ = thread.end();
                return Err(RecordError::Start(error));
            }
        };
        let pid = std::process::id();
        Ok(Recording { path: path.to_owned(), pid, place, thread: Some(thread) })
    }
}

/// A recording in progress, until it is finished or dropped.
#[derive(Debug)]
#[must_use = "dropping it ends the recording"]
pub struct Recording {
    path: PathBuf,
    /// The process that records. A forked child has a copy of this value, but no writing thread.
    pid: u32,
    place: Place,
    thread: Option<RecorderThread>,
}

/// The number of events in a finished recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordingSummary {
    /// The number of allocations and frees in the file.
    pub events: u64,
    /// The number of events that were lost because they came faster than they were written. Only a
    /// [lossy](Recorder::lossy) recording loses any, unless memory is short.
    pub lost: u64,
}

impl Recording {
    /// Ends the recording. Tracking continues as it was before: with its options, or off; while
    /// other recordings are in progress, as the newest of them needs it. Tracked blocks stay in the
    /// table.
    ///
    /// # Errors
    ///
    /// If the file could not be written, at any time during the recording.
    pub fn finish(mut self) -> Result<RecordingSummary, RecordError> {
        self.end()
    }

    fn end(&mut self) -> Result<RecordingSummary, RecordError> {
        if self.pid != std::process::id() {
            // The thread is not in this process: joining it would hang.
            let _ = ManuallyDrop::new(self.thread.take());
            return Ok(RecordingSummary::default());
        }
        let Some(thread) = self.thread.take() else { return Ok(RecordingSummary::default()) };
        self.place.end();
        thread.end().map_err(|error| {
            let path = self.path.clone();
            RecordError::CutOff { path, error, missing: events::end_failed() }
        })
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
    /// The file could not be created.
    File(PathBuf, io::Error),
    /// The recording ended early, because its file could not be written.
    CutOff {
        /// The path of the file.
        path: PathBuf,
        /// The error of its last write.
        error: io::Error,
        /// The number of events that came after it. A [lossy](Recorder::lossy) recording does not
        /// count them.
        missing: u64,
    },
    /// Another recording of this process is in progress, and neither is lossy.
    Busy,
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
            RecordError::CutOff { path, error, missing } => write!(
                out,
                "{}: {error}; the recording is incomplete, {missing} later events are missing",
                path.display()
            ),
            RecordError::Busy => out.write_str(
                "another recording of this process is in progress; one of them must be lossy",
            ),
        }
    }
}

impl std::error::Error for RecordError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RecordError::Start(error) => Some(error),
            RecordError::File(_, error) | RecordError::CutOff { error, .. } => Some(error),
            RecordError::Busy => None,
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
    let text = path.to_string_lossy();
    let (pattern, chosen) = without_words(&text);
    let path = path_of(pattern, std::process::id());
    let recorder = match crate::sample::variable::options() {
        Some(Ok(options)) => Recorder::default().options(options),
        _ => Recorder::default(),
    };
    let recorder = recorder.lossy(chosen.may_lose).free_stacks(chosen.free_stacks);
    match recorder.start(&path) {
        Ok(recording) => {
            if let Ok(mut place) = FROM_START.lock() {
                *place = Some(recording);
            }
            at_exit(finish_at_exit);
            sudden_exit::start();
        }
        Err(error) => eprintln!("DMD[{}] records nothing: {error}", std::process::id()),
    }
}

/// The words of the variable before the name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Words {
    may_lose: bool,
    free_stacks: bool,
}

/// Takes the words before the name off the value of the variable.
fn without_words(mut text: &str) -> (&str, Words) {
    let mut words = Words::default();
    loop {
        if let Some(rest) = text.strip_prefix("--lossy ") {
            (text, words.may_lose) = (rest, true);
        } else if let Some(rest) = text.strip_prefix("--free-stacks ") {
            (text, words.free_stacks) = (rest, true);
        } else {
            return (text, words);
        }
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

#[expect(clippy::print_stderr, reason = "there is no caller to return an error to")]
extern "C" fn finish_at_exit() {
    let recording = FROM_START.lock().ok().and_then(|mut place| place.take());
    if let Some(Err(error)) = recording.map(Recording::finish) {
        eprintln!("DMD[{}] {error}", std::process::id());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_before_the_name_are_no_part_of_it() {
        let words = |may_lose, free_stacks| Words { may_lose, free_stacks };
        assert_eq!(without_words("a b"), ("a b", words(false, false)));
        assert_eq!(without_words("--lossy %p"), ("%p", words(true, false)));
        assert_eq!(without_words("--free-stacks --lossy a"), ("a", words(true, true)));
        assert_eq!(without_words("--lossy"), ("--lossy", words(false, false)));
    }

    #[test]
    fn every_process_has_a_path_of_its_own() {
        assert_eq!(path_of("a/%p.rec.gz", 7), "a/7.rec.gz");
        assert_eq!(path_of("a/leak.rec", 7), "a/leak.rec.7");
    }
}
