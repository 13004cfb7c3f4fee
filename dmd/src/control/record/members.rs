//! The file of a recording: gzip members, each complete when it is written.
//!
//! If the program is killed, all members that were written are in the file.

use std::fs::File;
use std::io::{self, Write};

use flate2::write::GzEncoder;
use flate2::{Compression, Crc};

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
        if self.is_hurried {
            write_stored(&self.content, &mut self.file)?;
        } else {
            let mut out = GzEncoder::new(&mut self.file, Compression::fast());
            out.write_all(&self.content)?;
            out.finish()?;
        }
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

/// Writes a member without compression, by RFC 1952 (gzip) and RFC 1951 (its stored blocks).
fn write_stored(content: &[u8], out: &mut impl Write) -> io::Result<()> {
    const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    out.write_all(&HEADER)?;
    let mut blocks = content.chunks(usize::from(u16::MAX)).peekable();
    while let Some(block) = blocks.next() {
        let is_last = blocks.peek().is_none();
        // No longer than the maximum of a chunk.
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        let [low, high] = length.to_le_bytes();
        out.write_all(&[u8::from(is_last), low, high, !low, !high])?;
        out.write_all(block)?;
    }
    let mut sum = Crc::new();
    sum.update(content);
    out.write_all(&sum.sum().to_le_bytes())?;
    out.write_all(&sum.amount().to_le_bytes())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn stored_members_are_gzip() {
        for length in [1, 65_534, 65_535, 65_536, 200_000] {
            let content: Vec<u8> = (0..length).map(|place: u32| place.to_le_bytes()[1]).collect();
            let mut member = Vec::new();
            write_stored(&content, &mut member).unwrap();
            let mut read = Vec::new();
            GzDecoder::new(&member[..]).read_to_end(&mut read).unwrap();
            assert!(read == content, "{length} bytes");
        }
    }
}
