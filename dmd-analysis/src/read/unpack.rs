//! Unpacks the bytes of a dump up to a limit. The first two bytes show whether they are gzipped.

use std::io::{self, BufRead, Read};

use flate2::bufread::MultiGzDecoder;

use super::ReadError;

/// The default limit for the size of a dump: 4 GiB of JSON, about 60 million blocks.
pub const DEFAULT_LIMIT: u64 = 4 << 30;

/// The bytes that every gzipped file may unpack to.
const FREE: u64 = 16 << 20;

/// Beyond [`FREE`], the unpacked bytes for each byte of the file. Dumps have 5 to 30.
const RATIO: u64 = 100;

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The bytes to unpack before the text is checked for the first time.
const FIRST_LOOK: u64 = 64 << 10;

/// Reads and unpacks a dump. `size` is the expected number of bytes to read, or 0.
pub(crate) fn unpack(input: impl Read, size: usize, limit: u64) -> Result<Vec<u8>, ReadError> {
    let bytes = read_to_limit(input, size, limit, ReadError::Io)?;
    if !bytes.starts_with(&GZIP) {
        return Ok(bytes);
    }
    let mut unzipped = Unpacker::new(bytes.as_slice());
    // A gzip bomb is seldom a JSON object, so the first byte is checked before the rest is
    // unpacked.
    let mut json = Vec::new();
    (&mut unzipped).take(FIRST_LOOK).read_to_end(&mut json).map_err(unpack_error)?;
    if json.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|&byte| byte != b'{') {
        return Err(ReadError::Missing("version"));
    }
    let rest = limit.saturating_sub(json.len() as u64);
    json.append(&mut read_to_limit(unzipped, 0, rest, unpack_error).map_err(
        |error| match error {
            ReadError::TooLarge(_) => ReadError::TooLarge(limit),
            other => other,
        },
    )?);
    Ok(json)
}

/// A decoder of gzip data. It fails beyond [`FREE`] and [`RATIO`].
pub(crate) struct Unpacker<R> {
    decoder: MultiGzDecoder<Counted<R>>,
    unpacked: u64,
}

impl<R: BufRead> Unpacker<R> {
    pub(crate) fn new(input: R) -> Self {
        Unpacker { decoder: MultiGzDecoder::new(Counted { input, count: 0 }), unpacked: 0 }
    }
}

impl<R: BufRead> Read for Unpacker<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.decoder.read(buffer)?;
        self.unpacked += count as u64;
        if self.unpacked > FREE.max(self.decoder.get_ref().count.saturating_mul(RATIO)) {
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

/// Returns the error of unpacking.
fn unpack_error(error: io::Error) -> ReadError {
    match error.kind() {
        io::ErrorKind::FileTooLarge => ReadError::Bomb(error),
        _ => ReadError::Gzip(error),
    }
}

fn read_to_limit(
    input: impl Read,
    size: usize,
    limit: u64,
    wrap: fn(io::Error) -> ReadError,
) -> Result<Vec<u8>, ReadError> {
    // One byte more than expected, so that the end is detected without growing the buffer.
    let mut bytes = Vec::with_capacity(size.saturating_add(1));
    input.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(wrap)?;
    if bytes.len() as u64 > limit { Err(ReadError::TooLarge(limit)) } else { Ok(bytes) }
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
