//! Reads a memory report file, Firefox's or ours, as a stream of reports.
//!
//! Nothing is kept but the report at hand, so the size of the file does not matter to this module. What a report says is
//! handed on as the file has it, with types and all: what a viewer makes of an amount that is a string is the viewer's rule.

mod error;
mod json;
mod own;
mod report;
#[cfg(test)]
mod tests;

pub use error::ReadError;
pub use own::{Own, OwnEvent, OwnProcess, Sizes, Skipped};
pub use report::{Entry, Field};

use flate2::read::GzDecoder;
use json::{Json, Start};
use report::Slots;
use std::error::Error;
use std::io::{Chain, Cursor, Read};

/// How a file is read, and how much of it is believed. A file beyond a limit is refused, by name of the limit.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The text, after unzipping, in bytes: 2 GiB.
    pub bytes: u64,
    /// Objects and arrays within each other: 512.
    pub nesting: usize,
    /// One string, in bytes: 16 MiB.
    pub string: usize,
    /// Whether zipped text is UTF-8 too. Firefox takes each byte of it for a character of Latin-1, so this is off; a file
    /// that escapes all but ASCII reads the same either way.
    pub utf8: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { bytes: 2 << 30, nesting: 512, string: 16 << 20, utf8: false }
    }
}

/// What takes the reports as they come.
pub trait Sink {
    /// Forget all reports so far: the file has a later list, and the last one counts.
    fn restart(&mut self);
    /// One report more.
    ///
    /// # Errors
    /// Says what is wrong with it. No further reports follow, but the file is read to its end, for a fault of the file as
    /// a whole counts for more than one of a report.
    fn report(&mut self, entry: &Entry<'_>) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// What a file says beside its reports.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// Firefox's `hasMozMallocUsableSize`: whether the allocator can be asked for the size of a block.
    pub usable_size: Field<'static>,
    /// How many reports there were.
    pub reports: usize,
    /// What this project adds to Firefox's file.
    pub own: Own,
}

/// Reads a file from `input`, gzipped or not, and gives each report to `sink`.
///
/// # Errors
/// A fault of the input, of the text, or of the file as a memory report; or the first that `sink` found.
pub fn read(
    input: &mut dyn Read,
    options: Options,
    sink: &mut dyn Sink,
) -> Result<Header, ReadError> {
    let (mut input, is_gzip) = look_ahead(input)?;
    if is_gzip {
        read_text(&mut GzDecoder::new(input), options, sink)
    } else {
        read_text(&mut input, Options { utf8: true, ..options }, sink)
    }
}

type Whole<'r> = Chain<Cursor<Vec<u8>>, &'r mut dyn Read>;

/// Gzip says so in its first two bytes, which no JSON has.
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

/// What has been found of the file's own members; a later one of a name takes the place of an earlier.
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
    /// The first fault of a report.
    fault: Option<ReadError>,
}

impl File<'_, '_> {
    /// The outermost value. In a crash dump the memory report is its member `memory_report`.
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

    /// The memory report of a crash dump.
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

    /// A member of the memory report, whose key has been read.
    fn member(&mut self) -> Result<(), ReadError> {
        match self.key.as_str() {
            "version" => self.file.version = report::field(&mut self.json)?,
            "hasMozMallocUsableSize" => self.file.usable_size = report::field(&mut self.json)?,
            "memreport" => self.file.own = Own::from_value(self.json.value(1)?),
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
