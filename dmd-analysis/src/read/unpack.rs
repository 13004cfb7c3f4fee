//! Unpacks the bytes of a dump while they are read. The first two show whether they are gzipped.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use super::error::ReadError;
use super::input::Input;

/// The default limit for the JSON of a dump: 4 GiB, about 60 million blocks.
pub const DEFAULT_LIMIT: u64 = 4 << 30;

/// The bytes that every gzipped file may unpack to, up to the end of its text.
const FREE: u64 = 16 << 20;

/// The bytes that a scan may unpack to, with the contents of its blocks. Where these are zeros, a
/// byte of the file is a thousand of them.
const FREE_WITH_CONTENTS: u64 = 4 << 30;

/// Beyond these, the unpacked bytes for each byte of the file. Dumps have 5 to 30.
const RATIO: u64 = 100;

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The bytes to unpack before the text is checked for the first time.
const FIRST_LOOK: u64 = 64 << 10;

/// The bytes that are read at once.
const BUFFER: usize = 256 << 10;

/// The bytes of a dump, which are unpacked while they are read.
pub(crate) enum Unpacked<R> {
    Plain(BufReader<R>),
    Gzip(Box<BufReader<Unpacker<BufReader<R>>>>),
}

impl<R: Read> Unpacked<R> {
    pub(crate) fn open(input: R) -> Result<Self, ReadError> {
        let mut plain = BufReader::with_capacity(BUFFER, input);
        let is_gzip = plain.fill_buf().map_err(ReadError::Io)?.starts_with(&GZIP);
        Ok(match is_gzip {
            false => Self::Plain(plain),
            true => Self::Gzip(Box::new(BufReader::with_capacity(BUFFER, Unpacker::new(plain)))),
        })
    }

    /// Reads the JSON of a dump, which ends with the input or before a byte of zeros.
    pub(crate) fn json(&mut self, limit: u64) -> Result<Vec<u8>, ReadError> {
        let mut json = Vec::new();
        self.append(FIRST_LOOK.min(limit), &mut json)?;
        // Other files and gzip bombs are seldom JSON objects, so the first byte is checked before
        // the rest takes memory.
        let first = json.iter().find(|byte| !byte.is_ascii_whitespace());
        match (&self, first) {
            (_, None | Some(b'{')) | (Self::Plain(_), Some(0)) => {}
            // The error of the text names what was found.
            (Self::Plain(_), _) => return Ok(json),
            (Self::Gzip(_), _) => return Err(ReadError::Missing("version")),
        }
        if json.last() != Some(&0) {
            let rest = limit.saturating_sub(json.len() as u64);
            self.append(rest.saturating_add(1), &mut json)?;
        }
        if json.last() == Some(&0) {
            json.pop();
            self.end_of_json();
        }
        if json.len() as u64 > limit { Err(ReadError::TooLarge(limit)) } else { Ok(json) }
    }

    /// Raises the limit of gzipped data: the blocks of a scan follow.
    fn end_of_json(&mut self) {
        if let Self::Gzip(input) = self {
            input.get_mut().free = FREE_WITH_CONTENTS;
        }
    }

    /// Reads at most this many bytes, up to a byte of zeros.
    fn append(&mut self, limit: u64, to: &mut Vec<u8>) -> Result<(), ReadError> {
        let read = self.by_ref().take(limit).read_until(0, to);
        read.map(|_| ()).map_err(|error| self.error(error))
    }
}

impl<R: Read> Input for Unpacked<R> {
    fn error(&self, error: io::Error) -> ReadError {
        match self {
            Self::Plain(_) => ReadError::Io(error),
            Self::Gzip(_) if error.kind() == io::ErrorKind::FileTooLarge => ReadError::Bomb(error),
            Self::Gzip(_) => ReadError::Gzip(error),
        }
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(input) => input.read(buffer),
            Self::Gzip(input) => input.read(buffer),
        }
    }
}

impl<R: Read> BufRead for Unpacked<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            Self::Plain(input) => input.fill_buf(),
            Self::Gzip(input) => input.fill_buf(),
        }
    }

    fn consume(&mut self, count: usize) {
        match self {
            Self::Plain(input) => input.consume(count),
            Self::Gzip(input) => input.consume(count),
        }
    }
}

/// A decoder of gzip data. It fails beyond its free bytes and [`RATIO`].
pub(crate) struct Unpacker<R> {
    decoder: MultiGzDecoder<Counted<R>>,
    unpacked: u64,
    free: u64,
}

impl<R: BufRead> Unpacker<R> {
    pub(crate) fn new(input: R) -> Self {
        let decoder = MultiGzDecoder::new(Counted { input, count: 0 });
        Unpacker { decoder, unpacked: 0, free: FREE }
    }
}

impl<R: BufRead> Read for Unpacker<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.decoder.read(buffer)?;
        self.unpacked += count as u64;
        if self.unpacked > self.free.max(self.decoder.get_ref().count.saturating_mul(RATIO)) {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!(
                    "it unpacks to more than {RATIO} times its size; if you trust it, unpack it first"
                ),
            ));
        }
        Ok(count)
    }
}

/// A reader that counts the bytes it has passed on.
struct Counted<R> {
    input: R,
    count: u64,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.count += count as u64;
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.count += count as u64;
        self.input.consume(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_in_whatever_way_they_are_read() {
        let mut counted = Counted { input: &b"0123456789"[..], count: 0 };
        assert_eq!(counted.read(&mut [0; 3]).expect("a slice can be read"), 3);
        assert_eq!(counted.fill_buf().expect("a slice can be read"), b"3456789");
        counted.consume(1);
        assert_eq!(counted.read(&mut [0; 9]).expect("a slice can be read"), 6);
        assert_eq!(counted.count, 10);
    }
}
