//! Dumps as commands take them in: read, and their frames looked up; what is remarkable goes to standard error.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use dmd::dump::read::{self, Dump};
use dmd::symbols::{Members, Options, Symboliser};

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
        let mut dump = dump.map_err(|error| DmdError::Read(path.to_owned(), error))?;
        let notes = self.symboliser.symbolicate(&mut dump).notes;
        for note in dump.notes.iter().chain(&notes) {
            if !self.said.contains(note) {
                // Standard error is for people: that nobody reads it must not stop the answer.
                let _ = writeln!(err, "{note}");
                self.said.push(note.clone());
            }
        }
        Ok(dump)
    }
}
