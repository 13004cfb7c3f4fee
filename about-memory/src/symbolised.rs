//! Dumps and recordings as commands take them in: read, and their frames looked up; what is remarkable goes to standard error.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use memreport_analysis::heap::history::History;
use memreport_analysis::heap::{Heap, HeapOptions};
use memreport_analysis::read;
use memreport_analysis::read::{Dump, ReadError};
use memreport_analysis::recording;
use memreport_analysis::recording::Moment;
use memreport_analysis::symbols::{Members, Options, Symboliser};

use crate::dmd::DmdError;

/// Reads dumps; functions found for one are remembered for the next.
#[derive(Debug)]
pub struct Reader {
    symboliser: Symboliser,
    /// What has been said, so that nothing is said of two dumps.
    said: Vec<String>,
}

impl Reader {
    /// A reader that looks for symbols in these directories first.
    #[must_use]
    pub fn new(symbols: &[PathBuf]) -> Self {
        let mut options = Options::default();
        options.search = symbols.to_vec();
        Self { symboliser: Symboliser::new(options), said: Vec::new() }
    }

    /// Where the fields of these types of the dump's program are.
    pub(crate) fn members(&mut self, dump: &Dump, types: &[String]) -> Members {
        self.symboliser.members(dump, types)
    }

    /// The dump at `path`; `-` is standard input.
    ///
    /// # Errors
    ///
    /// If it cannot be read or is no dump.
    pub fn read(&mut self, path: &Path, err: &mut dyn Write) -> Result<Dump, DmdError> {
        let dump = if path == Path::new("-") {
            read::read(io::stdin().lock(), read::DEFAULT_LIMIT)
        } else {
            read::read_file(path)
        };
        self.symbolicated(dump.map_err(|error| DmdError::Read(path.to_owned(), error))?, err)
    }

    /// The dump in these bytes; `path` is what messages call it.
    ///
    /// # Errors
    ///
    /// If they are no dump.
    pub fn read_bytes(
        &mut self,
        (path, bytes): (&Path, &[u8]),
        err: &mut dyn Write,
    ) -> Result<Dump, DmdError> {
        let dump = read::read(bytes, read::DEFAULT_LIMIT);
        self.symbolicated(dump.map_err(|error| DmdError::Read(path.to_owned(), error))?, err)
    }

    /// The dump or the recording at `path`; `-` is standard input.
    ///
    /// # Errors
    ///
    /// If it cannot be read or is neither.
    pub fn open(&mut self, path: &Path, err: &mut dyn Write) -> Result<Input, DmdError> {
        let unread = |error| DmdError::Read(path.to_owned(), ReadError::Io(error));
        let mut file: Box<dyn Read> = if path == Path::new("-") {
            Box::new(io::stdin().lock())
        } else {
            Box::new(File::open(path).map_err(unread)?)
        };
        let mut head = Vec::new();
        file.by_ref().take(HEAD).read_to_end(&mut head).map_err(unread)?;
        let is_recording = recording::is_recording(&text_of(&head));
        let whole = head.chain(file);
        if !is_recording {
            let dump = read::read(whole, read::DEFAULT_LIMIT);
            let dump = dump.map_err(|error| DmdError::Read(path.to_owned(), error))?;
            return Ok(Input::Dump(Box::new(self.symbolicated(dump, err)?)));
        }
        let recording =
            recording::read(whole).map_err(|error| DmdError::Recording(path.to_owned(), error))?;
        let history = History::new(recording);
        let mut history = history.map_err(|error| DmdError::Read(path.to_owned(), error))?;
        let mut notes = history.symbolicate(&mut self.symboliser).notes;
        notes.extend_from_slice(history.notes());
        self.say(&notes, err);
        Ok(Input::Recording(Box::new(history)))
    }

    fn symbolicated(&mut self, mut dump: Dump, err: &mut dyn Write) -> Result<Dump, DmdError> {
        let mut notes = dump.notes.clone();
        notes.extend(self.symboliser.symbolicate(&mut dump).notes);
        self.say(&notes, err);
        Ok(dump)
    }

    fn say(&mut self, notes: &[String], err: &mut dyn Write) {
        for note in notes {
            if !self.said.contains(note) {
                // Standard error is for people: that nobody reads it must not stop the answer.
                let _ = writeln!(err, "{note}");
                self.said.push(note.clone());
            }
        }
    }
}

/// So much of a file tells what it is.
const HEAD: u64 = 1 << 16;

/// The text that a file begins with, as far as its first bytes tell.
fn text_of(head: &[u8]) -> Vec<u8> {
    if !head.starts_with(&[0x1f, 0x8b]) {
        return head.to_vec();
    }
    let mut text = Vec::new();
    // It is cut off, and what it has up to there is all that is wanted.
    let _ = GzDecoder::new(head).take(HEAD).read_to_end(&mut text);
    text
}

/// What has a heap.
#[derive(Debug)]
pub enum Input {
    /// Of one moment.
    Dump(Box<Dump>),
    /// Of each of its moments.
    Recording(Box<History>),
}

impl Input {
    /// Its heap: of a recording at a moment, the end if none is given.
    ///
    /// # Errors
    ///
    /// If it has no such moment, or does not say who reports what and is asked for it.
    pub fn heap(
        &self,
        at: Option<Moment>,
        options: &HeapOptions,
        path: &Path,
    ) -> Result<Heap, DmdError> {
        match (self, at) {
            (Input::Dump(_), Some(_)) => Err(DmdError::NoTime(path.to_owned())),
            (Input::Dump(dump), None) => Heap::new(dump, options)
                .map_err(|error| DmdError::NoReports(path.to_owned(), error)),
            (Input::Recording(history), at) => {
                let heap = history.heap(time(history, at, path)?, options);
                heap.map_err(|_| DmdError::Unreported(path.to_owned()))
            }
        }
    }
}

/// When a moment is, in microseconds since the beginning.
///
/// # Errors
///
/// If the recording does not have it.
pub fn time(history: &History, at: Option<Moment>, path: &Path) -> Result<u64, DmdError> {
    let time = history.recording().at(at.unwrap_or(Moment::End));
    time.map_err(|error| DmdError::Moment(path.to_owned(), error))
}
