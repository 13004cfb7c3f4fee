//! Opens memory reports: files, standard input and running programs.

use super::kind::FileKind;
use super::live::{self, LiveError, Target, pid_of, report_of};
use super::missing;
use crate::report::diff::Side;
use crate::report::diff::pair::{Pair, ReadSide};
use crate::report::filter::Filter;
use crate::report::page::file_builder::{FileBuilder, Opened};
use crate::report::report_tree::Refusal;
use crate::report::resident::snapshot::START_TOLERANCE_MS;
use crate::report::tree::Settings;
use memreport::snapshot::read::{self, Entry, Header, Options, ReadError, Sink};
use std::error::Error;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf, is_separator};

/// A file that cannot be shown, with the reason.
#[derive(Debug)]
pub struct OpenError {
    path: PathBuf,
    reason: Reason,
}

#[derive(Debug)]
enum Reason {
    Open(io::Error),
    /// No such file; the message names others.
    Missing(String),
    Directory,
    NotGzip,
    Read(ReadError),
    OtherKind(FileKind),
    Refused(Refusal),
    Live(Box<LiveError>),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_stdin(&self.path) {
            f.write_str("standard input: ")?;
        } else {
            write!(f, "{}: ", self.path.display())?;
        }
        match &self.reason {
            Reason::Missing(message) => f.write_str(message),
            Reason::Open(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                f.write_str("may not be read; check its permissions")
            }
            Reason::Open(_) => f.write_str("cannot be opened"),
            Reason::Directory => f.write_str("a directory; name a file in it"),
            Reason::NotGzip => {
                f.write_str("its name ends in .gz, but it is not gzip data; gzip it or rename it")
            }
            Reason::Read(error) => write!(f, "{error}"),
            Reason::OtherKind(kind) => f.write_str(&kind.describe(&self.path)),
            Reason::Refused(refusal) => write!(f, "{refusal}"),
            Reason::Live(error) => write!(f, "{error}"),
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.reason {
            Reason::Open(error) => match error.kind() {
                io::ErrorKind::PermissionDenied => None,
                _ => Some(error),
            },
            // The message contains the error's message already.
            Reason::Read(error) => error.source(),
            Reason::Live(error) => error.source(),
            Reason::Missing(_)
            | Reason::Directory
            | Reason::NotGzip
            | Reason::OtherKind(_)
            | Reason::Refused(_) => None,
        }
    }
}

/// The bytes of a report, with the name that messages give it.
#[derive(Clone, Copy, Debug)]
pub struct NamedBytes<'b> {
    /// The name, as of a file.
    pub name: &'b str,
    /// The report, plain or gzipped.
    pub bytes: &'b [u8],
}

/// Returns whether a path stands for standard input.
pub(super) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Returns the running program that a path stands for, if no file has that name.
pub(crate) fn running(path: &Path) -> Option<Target> {
    if pid_of(path).is_some() {
        return Some(Target::Socket(path.to_owned()));
    }
    let name = path.to_str().filter(|_| !path.exists())?;
    if let Ok(pid) = name.parse() {
        return Some(Target::Pid(pid));
    }
    (may_be_program(name) && live::is_running(name)).then(|| Target::Name(name.to_owned()))
}

/// Returns whether a word may be the name of a program. Names of files have a dot, or a separator
/// of folders; those of programs rarely.
pub(crate) fn may_be_program(word: &str) -> bool {
    !word.is_empty() && word != "-" && !word.contains('.') && !word.contains(is_separator)
}

/// Reads a file, or the report of a running program, into `sink`.
///
/// # Errors
/// The file cannot be read or is no memory report.
pub fn read(path: &Path, options: Options, sink: &mut dyn Sink) -> Result<Header, OpenError> {
    let mut input = input(path)?;
    read::read(&mut *input, options, sink).map_err(|error| {
        let reason = match FileKind::of(path) {
            Some(kind) if kind != FileKind::Report => Reason::OtherKind(kind),
            _ => Reason::Read(error),
        };
        OpenError { path: path.to_owned(), reason }
    })
}

/// Reads the bytes of a file.
///
/// # Errors
/// The file cannot be read.
pub fn load(path: &Path) -> Result<Vec<u8>, OpenError> {
    let mut bytes = Vec::new();
    let done = input(path)?.read_to_end(&mut bytes);
    done.map_err(|error| OpenError { path: path.to_owned(), reason: Reason::Open(error) })?;
    Ok(bytes)
}

fn input(path: &Path) -> Result<Box<dyn Read>, OpenError> {
    let fail = |reason| OpenError { path: path.to_owned(), reason };
    if is_stdin(path) {
        return Ok(Box::new(io::stdin().lock()));
    }
    if let Some(target) = running(path) {
        let report = report_of(&target).map_err(|error| fail(Reason::Live(Box::new(error))))?;
        return Ok(Box::new(io::Cursor::new(report)));
    }
    // Before it is opened, which Windows does not allow.
    if path.is_dir() {
        return Err(fail(Reason::Directory));
    }
    let mut file = fs::File::open(path).map_err(|error| {
        fail(match error.kind() {
            io::ErrorKind::NotFound => {
                Reason::Missing(missing::describe(path, &|path| FileKind::of(path).is_some()))
            }
            _ => Reason::Open(error),
        })
    })?;
    let mut magic = Vec::new();
    file.by_ref().take(2).read_to_end(&mut magic).map_err(|error| fail(Reason::Open(error)))?;
    let is_named_gzip = path.extension().is_some_and(|extension| extension == "gz");
    if is_named_gzip && !magic.is_empty() && magic != [0x1f, 0x8b] {
        return Err(fail(Reason::NotGzip));
    }
    Ok(Box::new(io::Cursor::new(magic).chain(file)))
}

/// Reads a file and computes all totals, of the reports that match `filter`.
///
/// # Errors
/// The file cannot be read or shown.
pub fn open(
    path: &Path,
    options: Options,
    filter: Filter,
    settings: &Settings,
) -> Result<Opened, OpenError> {
    let mut builder = FileBuilder::new(filter);
    let header = read(path, options, &mut builder)?;
    builder
        .open(&header, settings)
        .map_err(|refusal| OpenError { path: path.to_owned(), reason: Reason::Refused(refusal) })
}

/// Reads a report in memory and computes all totals.
///
/// # Errors
/// The report cannot be read or shown.
pub fn open_bytes(
    NamedBytes { name, mut bytes }: NamedBytes<'_>,
    options: Options,
    filter: Filter,
    settings: &Settings,
) -> Result<Opened, OpenError> {
    let mut builder = FileBuilder::new(filter);
    let header = read::read(&mut bytes, options, &mut builder).map_err(Reason::Read);
    let opened = header.and_then(|header| builder.open(&header, settings).map_err(Reason::Refused));
    opened.map_err(|reason| OpenError { path: name.into(), reason })
}

/// A sink that ignores the reports of a file.
pub(crate) struct Ignore;

impl Sink for Ignore {
    fn restart(&mut self) {}

    fn report(&mut self, _: &Entry<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

/// Returns whether two files are snapshots of one process that was not restarted between them.
/// Running programs are not: their reports are of now.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn are_of_one_process(paths: [&Path; 2], options: Options) -> Result<bool, OpenError> {
    if paths.into_iter().any(|path| is_stdin(path) || running(path).is_some()) {
        return Ok(false);
    }
    let [a, b] =
        paths.map(|path| read(path, options, &mut Ignore).map(|header| header.own.process));
    let ((Some(a), Some(b)), true) = ((a?, b?), paths[0] != paths[1]) else { return Ok(false) };
    let began = a.start_ms.zip(b.start_ms);
    let is_restarted = began.is_none_or(|(a, b)| a.abs_diff(b) > START_TOLERANCE_MS);
    Ok(a.pid.is_some() && a.pid == b.pid && !is_restarted)
}

/// Reads two files.
///
/// # Errors
/// A file cannot be read or compared.
pub fn open_two([first, second]: [&Path; 2], options: Options) -> Result<Pair, OpenError> {
    let read_side = |path| {
        let mut side = Side::default();
        let header = read(path, options, &mut side)?;
        Ok(ReadSide { reports: side, header })
    };
    Ok(Pair { first: read_side(first)?, second: read_side(second)? })
}

/// Reads two reports in memory.
///
/// # Errors
/// A report cannot be read or compared.
pub fn open_two_bytes(
    [first, second]: [NamedBytes<'_>; 2],
    options: Options,
) -> Result<Pair, OpenError> {
    let read_side = |NamedBytes { name, mut bytes }: NamedBytes<'_>| {
        let mut side = Side::default();
        let header = read::read(&mut bytes, options, &mut side)
            .map_err(|error| OpenError { path: name.into(), reason: Reason::Read(error) })?;
        Ok(ReadSide { reports: side, header })
    };
    Ok(Pair { first: read_side(first)?, second: read_side(second)? })
}
