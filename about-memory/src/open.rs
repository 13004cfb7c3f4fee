//! Opens files: the rim, where bytes come from outside.

use crate::diff::{self, Change, Side, normalise};
use crate::filter::Filter;
use crate::forest::Forest;
use crate::live::{LiveError, Target, pid_of};
use crate::notes;
use crate::page::{File, Page};
use crate::refusal::Refusal;
use crate::snapshot;
use crate::tree::Settings;
use memreport::snapshot::read::{self, Entry, Header, Options, ReadError, Sink};
use std::error::Error;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A file that cannot be shown, with the reason.
#[derive(Debug)]
pub struct OpenError {
    path: PathBuf,
    reason: Reason,
}

#[derive(Debug)]
enum Reason {
    Open(io::Error),
    Directory,
    NotGzip,
    Read(ReadError),
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
            Reason::Open(error) if error.kind() == io::ErrorKind::NotFound => {
                f.write_str("no such file")
            }
            Reason::Open(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                f.write_str("may not be read; check its permissions")
            }
            Reason::Open(_) => f.write_str("cannot be opened"),
            Reason::Directory => f.write_str("a directory; name a file in it"),
            Reason::NotGzip => {
                f.write_str("its name ends in .gz, but it is not gzip data; gzip it or rename it")
            }
            Reason::Read(error) => write!(f, "{error}"),
            Reason::Refused(refusal) => write!(f, "{refusal}"),
            Reason::Live(error) => write!(f, "{error}"),
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.reason {
            Reason::Open(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => None,
                _ => Some(error),
            },
            // Its own words stand in the message already.
            Reason::Read(error) => error.source(),
            Reason::Live(error) => error.source(),
            Reason::Directory | Reason::NotGzip | Reason::Refused(_) => None,
        }
    }
}

/// `-` is standard input.
fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// The running program that is meant, if no file has that name.
fn running(path: &Path) -> Option<Target> {
    if pid_of(path).is_some() {
        return Some(Target::Socket(path.to_owned()));
    }
    let pid = path.to_str()?.parse().ok()?;
    (!path.exists()).then_some(Target::Pid(pid))
}

/// Reads a file, or what a running program reports, into `sink`.
///
/// # Errors
/// Says which file, and why it is no memory report.
pub fn read(path: &Path, options: Options, sink: &mut dyn Sink) -> Result<Header, OpenError> {
    let fail = |reason| OpenError { path: path.to_owned(), reason };
    if is_stdin(path) {
        return read::read(&mut io::stdin().lock(), options, sink)
            .map_err(|error| fail(Reason::Read(error)));
    }
    if let Some(target) = running(path) {
        let report = snapshot::of(&target).map_err(|error| fail(Reason::Live(Box::new(error))))?;
        return read::read(&mut &report[..], options, sink)
            .map_err(|error| fail(Reason::Read(error)));
    }
    let mut file = fs::File::open(path).map_err(|error| fail(Reason::Open(error)))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(fail(Reason::Directory));
    }
    let mut magic = Vec::new();
    file.by_ref().take(2).read_to_end(&mut magic).map_err(|error| fail(Reason::Open(error)))?;
    let is_named_gzip = path.extension().is_some_and(|extension| extension == "gz");
    if is_named_gzip && !magic.is_empty() && magic != [0x1f, 0x8b] {
        return Err(fail(Reason::NotGzip));
    }
    read::read(&mut magic.as_slice().chain(file), options, sink)
        .map_err(|error| fail(Reason::Read(error)))
}

/// A report that has been read, and what is to be said of it.
#[derive(Debug)]
pub struct Opened {
    /// What is shown.
    pub file: File,
    /// Sentences about the collection, for people.
    pub notes: Vec<String>,
}

/// Reads a file and makes all totals, with the reports that match `filter`.
///
/// # Errors
/// Says which file, and why it cannot be shown.
pub fn open(
    path: &Path,
    options: Options,
    filter: Filter,
    settings: &Settings,
) -> Result<Opened, OpenError> {
    let mut forests = Forests::new(filter);
    let header = read(path, options, &mut forests)?;
    opened(forests, &header, settings).map_err(|reason| OpenError { path: path.to_owned(), reason })
}

/// The same of what is not in a file: of the bytes of one, under the name that messages should give it.
///
/// # Errors
/// Says why it cannot be shown.
pub fn open_bytes(
    (name, mut bytes): (&str, &[u8]),
    options: Options,
    filter: Filter,
    settings: &Settings,
) -> Result<Opened, OpenError> {
    let mut forests = Forests::new(filter);
    let header = read::read(&mut bytes, options, &mut forests).map_err(Reason::Read);
    let opened = header.and_then(|header| opened(forests, &header, settings));
    opened.map_err(|reason| OpenError { path: name.into(), reason })
}

fn opened(forests: Forests, header: &Header, settings: &Settings) -> Result<Opened, Reason> {
    let file = forests.finish(writer(header).as_deref(), header.usable_size.is_truthy(), settings);
    Ok(Opened { file: file.map_err(Reason::Refused)?, notes: notes::of(&header.own) })
}

/// How the process that wrote a file is called: its reports do not name it.
fn writer(header: &Header) -> Option<String> {
    header.own.process.as_ref().map(|process| match process.pid {
        Some(pid) => format!("{} (pid {pid})", process.name),
        None => process.name.clone(),
    })
}

/// Two files that have been read and not yet compared.
#[derive(Debug)]
pub struct Two {
    first: (Side, Header),
    second: (Side, Header),
}

/// Reads two files.
///
/// # Errors
/// Says which file, and why it cannot be compared.
pub fn open_two([first, second]: [&Path; 2], options: Options) -> Result<Two, OpenError> {
    let read_side = |path| {
        let mut side = Side::default();
        let header = read(path, options, &mut side)?;
        Ok((side, header))
    };
    Ok(Two { first: read_side(first)?, second: read_side(second)? })
}

/// The same of the bytes of two files, under the name that messages should give them.
///
/// # Errors
/// Says why they cannot be compared.
pub fn open_two_bytes(
    name: &str,
    [first, second]: [&[u8]; 2],
    options: Options,
) -> Result<Two, OpenError> {
    let read_side = |mut bytes: &[u8]| {
        let mut side = Side::default();
        let header = read::read(&mut bytes, options, &mut side)
            .map_err(|error| OpenError { path: name.into(), reason: Reason::Read(error) })?;
        Ok((side, header))
    };
    Ok(Two { first: read_side(first)?, second: read_side(second)? })
}

impl Two {
    /// The notes of both files.
    pub fn notes(&self) -> Vec<String> {
        let of = |which, header: &Header| {
            notes::of(&header.own)
                .into_iter()
                .map(move |note| format!("{which} file: {note}"))
                .collect::<Vec<_>>()
        };
        [of("first", &self.first.1), of("second", &self.second.1)].concat()
    }

    /// What differs, as trees.
    ///
    /// # Errors
    /// Says what in them cannot be compared.
    pub fn compare(
        self,
        filter: Filter,
        settings: &Settings,
    ) -> Result<Opened, Box<dyn Error + Send + Sync>> {
        let notes = self.notes();
        let mut forests = Forests::new(filter);
        let Two { first: (first, first_header), second: (second, second_header) } = self;
        let same = writer(&first_header).filter(|name| {
            writer(&second_header)
                .is_none_or(|second| normalise::process(name) == normalise::process(&second))
        });
        let name = same.map(|name| normalise::process(&name).into_owned());
        diff::compare((first, &first_header), (second, &second_header), &mut forests)?;
        Ok(Opened {
            file: forests.finish(
                name.as_deref(),
                first_header.usable_size.is_truthy(),
                settings,
            )?,
            notes,
        })
    }

    /// What differs, path by path.
    ///
    /// # Errors
    /// Says what in them cannot be compared.
    pub fn changes(&self, filter: &Filter) -> Result<Vec<Change>, Box<dyn Error + Send + Sync>> {
        diff::changes(&self.first.0, &self.second.0, filter)
    }
}

/// The reports of a file, and those of them that match a filter. Firefox shows a file whole before anybody can filter it:
/// what it refuses whole it refuses filtered.
#[derive(Debug)]
struct Forests {
    all: Forest,
    filtered: Option<Forest>,
}

impl Sink for Forests {
    fn restart(&mut self) {
        self.all.clear();
        if let Some(filtered) = &mut self.filtered {
            filtered.clear();
        }
    }

    fn report(&mut self, entry: &Entry<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.all.add(entry)?;
        if let Some(filtered) = &mut self.filtered {
            filtered.add(entry)?;
        }
        Ok(())
    }
}

impl Forests {
    fn new(filter: Filter) -> Self {
        Forests {
            all: Forest::default(),
            filtered: (!filter.is_all()).then(|| Forest::new(filter)),
        }
    }

    fn finish(
        self,
        writer: Option<&str>,
        knows_usable_size: bool,
        settings: &Settings,
    ) -> Result<File, Refusal> {
        let prepare = |mut forest: Forest, is_filtered, invalid_before| {
            if let Some(name) = writer {
                forest.name_writer(name);
            }
            forest.total()?;
            Ok(File { forest, knows_usable_size, is_filtered, invalid_before })
        };
        let whole = prepare(self.all, false, Vec::new())?;
        let Some(filtered) = self.filtered else { return Ok(whole) };
        let whole = [whole];
        let unlisted = Page::new(&whole, settings).processes(|_| Ok::<(), Refusal>(()))?;
        prepare(filtered, true, unlisted)
    }
}
