//! Reads a memory report file, Firefox's or this crate's, as a stream of reports.
//!
//! Only the current report is kept in memory, so the size of the file does not matter. Of the other
//! members, `memreport` is kept up to 4 MiB, and unknown ones are skipped. A gzipped file may unzip
//! to 100 times its size, or 16 MiB. The fields
//! of a report keep the types of the file. A viewer decides how to show an amount that is a string.

mod error;
mod json;
mod unzip;
mod own;
mod field;
mod report;
#[cfg(test)]
mod tests;

pub use error::ReadError;
pub use field::Field;
pub use own::{Own, OwnEvent, OwnMissed, OwnProcess, SizeSource, Skipped};
pub use report::{Entry, NumericEntry};

use json::{Json, Start};
use report::Slots;
use std::error::Error;
use std::io::{Chain, Cursor, Read};
use unzip::Unzip;

/// Options and limits of a reader. A file beyond a limit is an error that names the limit.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The length of the unzipped text in bytes: 2 GiB by default.
    pub bytes: u64,
    /// The nesting depth of objects and arrays: 512 by default.
    pub nesting: usize,
    /// The length of one string in bytes: 16 MiB by default.
    pub string: usize,
    /// True if zipped text is UTF-8 as well. Firefox reads each byte of it as a Latin-1 character,
    /// so the default is false. A file that escapes everything but ASCII reads the same either way.
    pub utf8: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { bytes: 2 << 30, nesting: 512, string: 16 << 20, utf8: false }
    }
}

/// A consumer of reports.
pub trait Sink {
    /// Discards all reports so far: the file has a later list, and the last one counts.
    fn restart(&mut self);
    /// Receives one report.
    ///
    /// # Errors
    ///
    /// Returns the defect of the report. No further reports follow, but the file is read to its
    /// end, because a defect of the whole file has precedence.
    fn report(&mut self, entry: &Entry<'_>) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// The contents of a file besides its reports.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// Firefox's `hasMozMallocUsableSize`: whether the allocator has a size query.
    pub usable_size: Field<'static>,
    /// The number of reports.
    pub reports: usize,
    /// The additional fields of this crate.
    pub own: Own,
}

/// Reads a file from `input`, gzipped or not, and passes each report to `sink`.
///
/// # Errors
///
/// Returns a defect of the input, of the text, or of the file as a memory report; or the first
/// defect that `sink` returns.
pub fn read(
    input: &mut dyn Read,
    options: Options,
    sink: &mut dyn Sink,
) -> Result<Header, ReadError> {
    let (mut input, is_gzip) = look_ahead(input)?;
    if is_gzip {
        read_text(&mut Unzip::new(input), options, sink)
    } else {
        read_text(&mut input, Options { utf8: true, ..options }, sink)
    }
}

type Whole<'r> = Chain<Cursor<Vec<u8>>, &'r mut dyn Read>;

/// Detects gzip by its first two bytes, which no JSON has.
fn look_ahead(input: &mut dyn Read) -> Result<(Whole<'_>, bool), ReadError> {
    let mut magic = Vec::new();
    input.take(2).read_to_end(&mut magic).map_err(ReadError::from_io)?;
    let is_gzip = magic == [0x1f, 0x8b];
    Ok((Cursor::new(magic).chain(input), is_gzip))
}

fn read_text(
    text: &mut dyn Read,
    options: Options,
    sink: &mut dyn Sink,
) -> Result<Header, ReadError> {
    let mut json = Json::new(text, options);
    match json.first_bytes()? {
        [] => return Err(ReadError::Empty),
        [0xEF, 0xBB, 0xBF, ..] if options.utf8 => json.skip_bytes(3),
        [0xFE, 0xFF, ..] | [0xFF, 0xFE, ..] => return Err(ReadError::Utf16),
        _ => {}
    }
    let mut file = File {
        json,
        sink,
        file: Found::default(),
        key: String::new(),
        slots: Slots::default(),
        fault: None,
    };
    file.top()?;
    file.json.end()?;
    file.finish()
}

/// The most bytes of the member `memreport`.
const OWN_LIMIT: u64 = 4 << 20;

/// The file's own members. A later member replaces an earlier one with the same name.
#[derive(Default)]
struct Found {
    is_object: bool,
    version: Field<'static>,
    usable_size: Field<'static>,
    reports: Option<usize>,
    own: Own,
}

struct File<'r, 's> {
    json: Json<'r>,
    sink: &'s mut dyn Sink,
    file: Found,
    key: String,
    slots: Slots,
    /// The first defect of a report.
    fault: Option<ReadError>,
}

impl File<'_, '_> {
    /// Reads the outermost value. In a crash dump, the memory report is its member `memory_report`.
    fn top(&mut self) -> Result<(), ReadError> {
        if self.json.start()? != Start::Object {
            return self.json.skip(&mut self.key);
        }
        self.json.enter();
        let (mut first, mut in_crash_dump) = (true, false);
        self.file.is_object = true;
        while self.json.next_member(&mut first, b'}')? {
            self.json.key(&mut self.key)?;
            if self.key == "memory_report" {
                in_crash_dump = true;
                self.inner()?;
            } else if in_crash_dump {
                self.json.skip(&mut self.key)?;
            } else {
                self.member()?;
            }
        }
        Ok(())
    }

    /// Reads the memory report of a crash dump.
    fn inner(&mut self) -> Result<(), ReadError> {
        self.restart();
        self.file = Found::default();
        if self.json.start()? != Start::Object {
            return self.json.skip(&mut self.key);
        }
        self.json.enter();
        self.file.is_object = true;
        let mut first = true;
        while self.json.next_member(&mut first, b'}')? {
            self.json.key(&mut self.key)?;
            self.member()?;
        }
        Ok(())
    }

    fn restart(&mut self) {
        self.sink.restart();
        self.fault = None;
    }

    /// Reads a member of the memory report whose key has been read.
    fn member(&mut self) -> Result<(), ReadError> {
        match self.key.as_str() {
            "version" => self.file.version = report::field(&mut self.json)?,
            "hasMozMallocUsableSize" => self.file.usable_size = report::field(&mut self.json)?,
            "memreport" => self.file.own = Own::from_value(self.json.small_value(OWN_LIMIT)?),
            "reports" => {
                self.restart();
                self.file.reports = None;
                if self.json.start()? == Start::Array {
                    self.file.reports = Some(self.reports()?);
                } else {
                    self.json.skip(&mut self.key)?;
                }
            }
            _ => self.json.skip(&mut self.key)?,
        }
        Ok(())
    }

    fn reports(&mut self) -> Result<usize, ReadError> {
        self.json.enter();
        let (mut first, mut index) = (true, 0);
        while self.json.next_member(&mut first, b']')? {
            if self.fault.is_some() {
                self.json.skip(&mut self.key)?;
            } else {
                self.fault = self.slots.read(&mut self.json, &mut self.key, index, self.sink)?;
            }
            index += 1;
        }
        Ok(index)
    }

    fn finish(self) -> Result<Header, ReadError> {
        let file = self.file;
        if !file.is_object {
            return Err(ReadError::NotAnObject);
        }
        if file.version != Field::Number(1.0) {
            return Err(ReadError::Version { found: file.version });
        }
        if file.usable_size == Field::Missing {
            return Err(ReadError::NoUsableSize);
        }
        let reports = file.reports.ok_or(ReadError::NoReports)?;
        match self.fault {
            Some(fault) => Err(fault),
            None => Ok(Header { usable_size: file.usable_size, reports, own: file.own }),
        }
    }
}
