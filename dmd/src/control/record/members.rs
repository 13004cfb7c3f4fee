//! The file of a recording: gzip members, each complete when it is written.
//!
//! If the program is killed, all members that were written are in the file.

use std::fs::File;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

/// The size at which a member is written.
const FULL: usize = 1 << 20;

/// A writer of gzip members.
#[derive(Debug)]
pub(super) struct Members {
    file: File,
    /// The content of the next member.
    content: Vec<u8>,
    /// True while hooks wait, so that compressing would hold up the program.
    pub(super) is_hurried: bool,
}

impl Members {
    pub(super) fn new(file: File) -> Self {
        Members { file, content: Vec::with_capacity(FULL), is_hurried: false }
    }

    /// Writes what there is as a member.
    pub(super) fn end_member(&mut self) -> io::Result<()> {
        if self.content.is_empty() {
            return Ok(());
        }
        let level = if self.is_hurried { Compression::none() } else { Compression::fast() };
        let mut out = GzEncoder::new(&mut self.file, level);
        out.write_all(&self.content)?;
        out.finish()?;
        self.content.clear();
        Ok(())
    }
}

impl Write for Members {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.content.extend_from_slice(bytes);
        if self.content.len() >= FULL {
            self.end_member()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.end_member()?;
        self.file.flush()
    }
}
