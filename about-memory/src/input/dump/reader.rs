//! Opens and symbolicates dumps and recordings.

use super::ahead::{LARGE, ReadAhead};
use super::error::DumpError;
use super::source::DumpSource;
use crate::error::Failure;
use crate::input::kind::{FileKind, HEAD, text_of};
use crate::input::live::{self, DEFAULT_TIMEOUT};
use crate::input::missing;
use crate::input::open::{NamedBytes, is_stdin, running};
use crate::input::progress::Progress;
use memreport_analysis::heap::history::History;
use memreport_analysis::read;
use memreport_analysis::read::{Dump, ReadError};
use memreport_analysis::recording;
use memreport_analysis::recording::{Recording, RecordingError};
use memreport_analysis::symbols::{
    Members, Options, SymbolicateError, Symboliser, Types, symbolicate,
};
use std::fs::File;
use std::io::{self, Cursor, Read, Write};
use std::path::{Path, PathBuf};

/// A reader of dumps and recordings. It looks up each function once for all of them.
#[derive(Debug, Default)]
pub struct DumpReader {
    symboliser: Symboliser,
    /// The notes that have been returned or printed; none is repeated.
    seen: Vec<String>,
}

impl DumpReader {
    /// Makes a reader that looks for symbols in these folders first.
    #[must_use]
    pub fn new(symbols: &[PathBuf]) -> Self {
        let mut options = Options::default();
        options.search = symbols.to_vec();
        DumpReader { symboliser: Symboliser::new(options), seen: Vec::new() }
    }

    /// Reads and symbolicates the dump at `path`; `-` is standard input.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is no dump.
    pub fn read(&mut self, path: &Path, notes: &mut dyn Write) -> Result<Dump, DumpError> {
        let dump = Self::load(path)?;
        Ok(self.finish(dump, notes))
    }

    /// Reads and symbolicates a dump in memory.
    ///
    /// # Errors
    ///
    /// The bytes are no dump.
    pub fn read_bytes(
        &mut self,
        dump: NamedBytes<'_>,
        notes: &mut dyn Write,
    ) -> Result<Dump, DumpError> {
        let read = read::read(dump.bytes, read::DEFAULT_LIMIT);
        let read = read.map_err(|error| DumpError::Read(dump.name.into(), error))?;
        Ok(self.finish(read, notes))
    }

    /// Reads the dump at `path` without symbolicating it; `-` is standard input.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is no dump.
    pub fn load(path: &Path) -> Result<Dump, DumpError> {
        let opened = open_file(path).map_err(|error| not_opened(path, error))?;
        let _step = opened.step;
        let read = match opened.file.filter(|_| path.is_file() && is_plain(path)) {
            Some(file) => read::read_with_file(opened.input, file, read::DEFAULT_LIMIT),
            None => {
                read::read_with_copy(opened.input, &mut tempfile::tempfile, read::DEFAULT_LIMIT)
            }
        };
        read.map_err(|error| not_a_dump(path, error))
    }

    /// Reads the dump at `path` as [`load`](Self::load) does, for questions about amounts alone:
    /// blocks of a scan have neither addresses nor contents.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is no dump.
    pub(crate) fn load_amounts(path: &Path) -> Result<Dump, DumpError> {
        let Opened { input, step: _step, .. } =
            open_file(path).map_err(|error| not_opened(path, error))?;
        read::read_amounts(input, read::DEFAULT_LIMIT).map_err(|error| not_a_dump(path, error))
    }

    /// Reads and symbolicates the dump or the recording at `path`; `-` is standard input. Blocks of
    /// a scan have neither addresses nor contents.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is neither.
    pub fn open(&mut self, path: &Path, notes: &mut dyn Write) -> Result<DumpSource, DumpError> {
        let unreadable = |error| DumpError::Read(path.to_owned(), ReadError::Io(error));
        let opened = open_file(path).map_err(|error| not_opened(path, error))?;
        let Opened { step, mut input, file } = opened;
        let mut head = Vec::new();
        input.by_ref().take(HEAD).read_to_end(&mut head).map_err(unreadable)?;
        let is_recording = recording::is_recording(&text_of(&head));
        let whole = head.chain(input);
        if !is_recording {
            let dump = read::read_amounts(whole, read::DEFAULT_LIMIT)
                .map_err(|error| not_a_dump(path, error))?;
            drop(step);
            return Ok(DumpSource::Dump(Box::new(self.finish(dump, notes))));
        }
        let recording =
            read_one(whole, file).map_err(|error| DumpError::Recording(path.to_owned(), error))?;
        let history = History::new(recording);
        let mut history = history.map_err(|error| DumpError::Read(path.to_owned(), error))?;
        step.set_words(LOOKING_UP.to_owned());
        let mut found = history.symbolicate(&mut self.symboliser).notes;
        found.extend_from_slice(history.notes());
        self.print(found, notes);
        Ok(DumpSource::Recording(Box::new(history)))
    }

    /// Symbolicates a dump. Returns the notes that no earlier dump had.
    pub fn symbolicate(&mut self, dump: &mut Dump) -> Vec<String> {
        let _step = Progress::start(LOOKING_UP, None);
        let notes = self.symboliser.symbolicate(dump).notes;
        self.unseen(notes)
    }

    /// Writes the dump at `path` with symbolicated frames, as JSON. Returns notes for people.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is no dump, or the output cannot be written.
    pub fn symbolicate_file(
        &mut self,
        path: &Path,
        out: &mut dyn Write,
    ) -> Result<Vec<String>, Failure> {
        let Opened { step: _step, input, .. } =
            open_file(path).map_err(|error| not_opened(path, error))?;
        let report =
            symbolicate(input, &mut self.symboliser, out).map_err(|error| match error {
                SymbolicateError::Write(error) => Failure::answer(error),
                SymbolicateError::Read(error) => DumpError::Read(path.to_owned(), error).into(),
                error => error.into(),
            })?;
        let mut notes = report.notes;
        notes
            .push(format!("{} of {} addresses have functions now", report.found, report.addresses));
        Ok(notes)
    }

    /// Frees debug information: it may take more memory than the dump. It is read again when it is
    /// needed.
    pub(crate) fn free_modules(&mut self) {
        self.symboliser.free_modules();
    }

    /// Looks up the fields of types in the debug information of the dump's program.
    pub(crate) fn members(&mut self, dump: &Dump, types: &[String]) -> Members {
        self.symboliser.members(dump, types)
    }

    /// Reads the types of the dump's program from debug information.
    pub(crate) fn types(&mut self, dump: &Dump) -> Types {
        self.symboliser.types(dump)
    }

    pub(crate) fn finish(&mut self, mut dump: Dump, notes: &mut dyn Write) -> Dump {
        let _step = Progress::start(LOOKING_UP, None);
        let mut found = dump.notes.clone();
        found.extend(self.symboliser.symbolicate(&mut dump).notes);
        self.print(found, notes);
        dump
    }

    fn print(&mut self, found: Vec<String>, notes: &mut dyn Write) {
        for note in self.unseen(found) {
            // A closed standard error must not stop the answer.
            let _ = writeln!(notes, "note: {note}");
        }
    }

    fn unseen(&mut self, mut notes: Vec<String>) -> Vec<String> {
        notes.retain(|note| {
            let is_new = !self.seen.contains(note);
            if is_new {
                self.seen.push(note.clone());
            }
            is_new
        });
        notes
    }
}

/// Reads the recording at `path`.
///
/// # Errors
///
/// The file cannot be read or is no recording.
pub(crate) fn read_recording(path: &Path) -> Result<Recording, DumpError> {
    let is_recording = |path: &Path| FileKind::of(path) == Some(FileKind::Recording);
    let unreadable = |error| DumpError::Recording(path.to_owned(), error);
    let opened = open_file(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            DumpError::Missing(path.to_owned(), missing::describe(path, &is_recording))
        }
        _ => unreadable(RecordingError::Io(error)),
    })?;
    let Opened { input, file, step: _step } = opened;
    read_one(input, file).map_err(unreadable)
}

/// The words for looking up functions.
const LOOKING_UP: &str = "looking up functions and lines";

/// A file, standard input, or the dump of a running program.
struct Opened {
    /// Reading `input` moves it.
    step: Progress,
    input: Box<dyn Read>,
    /// The file itself, which `input` reads from its start.
    file: Option<File>,
}

fn read_one(input: impl Read, file: Option<File>) -> Result<Recording, RecordingError> {
    match file {
        Some(file) => recording::read_with_file(input, file),
        None => recording::read(input),
    }
}

/// Returns whether a file has the bytes of a dump as they are: it is not gzipped.
fn is_plain(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(2).read_to_end(&mut head));
    read.is_ok() && head != [0x1f, 0x8b]
}

/// Opens a file, or standard input, or takes the dump of a running program.
fn open_file(path: &Path) -> io::Result<Opened> {
    let words = format!("reading {}", path.display());
    if let Some(target) = running(path) {
        let step = Progress::start(format!("asking {} for its dump", path.display()), None);
        let dump = live::choose(&target, DEFAULT_TIMEOUT)
            .and_then(|program| program.report(true))
            .map_err(io::Error::other)?
            .dump;
        let dump = dump.ok_or_else(|| {
            io::Error::other("the program sent no dump: start tracking by `about-memory track`")
        })?;
        return Ok(Opened { step, input: Box::new(Cursor::new(dump)), file: None });
    }
    if is_stdin(path) {
        let step = Progress::start(words, None);
        return Ok(Opened { step, input: Box::new(io::stdin().lock()), file: None });
    }
    // Windows would not open it, and name another reason.
    if path.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "a directory; name a file in it"));
    }
    let file = File::open(path)?;
    let length = file.metadata().ok().filter(|found| found.is_file()).map(|found| found.len());
    let step = Progress::start(words, length);
    let ahead = match length {
        Some(LARGE..) => ReadAhead::start(file.try_clone()?).ok(),
        _ => None,
    };
    let input: Box<dyn Read> = match ahead {
        Some(ahead) => Box::new(step.reader(ahead)),
        None => Box::new(step.reader(file.try_clone()?)),
    };
    Ok(Opened { step, input, file: Some(file) })
}

/// Returns the error of a file that cannot be opened. Beside one that is not there, others are
/// named.
fn not_opened(path: &Path, error: io::Error) -> DumpError {
    match error.kind() {
        io::ErrorKind::NotFound => {
            let is_heap = |path: &Path| {
                matches!(FileKind::of(path), Some(FileKind::Dump | FileKind::Recording))
            };
            DumpError::Missing(path.to_owned(), missing::describe(path, &is_heap))
        }
        _ => DumpError::Read(path.to_owned(), ReadError::Io(error)),
    }
}

/// Returns the error of a file that is no dump. A file of another kind is named.
fn not_a_dump(path: &Path, error: ReadError) -> DumpError {
    match FileKind::of(path) {
        Some(kind) if kind != FileKind::Dump => DumpError::OtherKind(path.to_owned(), kind),
        _ => DumpError::Read(path.to_owned(), error),
    }
}
