//! Unpacks the bytes of a dump up to a limit. The first two bytes show whether they are gzipped.

use std::io::Read;

use flate2::bufread::MultiGzDecoder;

use super::ReadError;

/// The default limit for the size of a dump: 4 GiB of JSON, about 60 million blocks.
pub const DEFAULT_LIMIT: u64 = 4 << 30;

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The bytes to unpack before the text is checked for the first time.
const FIRST_LOOK: u64 = 64 << 10;

/// Reads and unpacks a dump. `size` is the expected number of bytes to read, or 0.
pub(crate) fn unpack(input: impl Read, size: usize, limit: u64) -> Result<Vec<u8>, ReadError> {
    let bytes = read_to_limit(input, size, limit, ReadError::Io)?;
    if !bytes.starts_with(&GZIP) {
        return Ok(bytes);
    }
    let mut unzipped = MultiGzDecoder::new(bytes.as_slice());
    // A gzip bomb is seldom a JSON object, so the first byte is checked before the rest is
    // unpacked.
    let mut json = Vec::new();
    (&mut unzipped).take(FIRST_LOOK).read_to_end(&mut json).map_err(ReadError::Gzip)?;
    if json.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|&byte| byte != b'{') {
        return Err(ReadError::Missing("version"));
    }
    let rest = limit.saturating_sub(json.len() as u64);
    json.append(&mut read_to_limit(unzipped, 0, rest, ReadError::Gzip).map_err(
        |error| match error {
            ReadError::TooLarge(_) => ReadError::TooLarge(limit),
            other => other,
        },
    )?);
    Ok(json)
}

fn read_to_limit(
    input: impl Read,
    size: usize,
    limit: u64,
    wrap: fn(std::io::Error) -> ReadError,
) -> Result<Vec<u8>, ReadError> {
    // One byte more than expected, so that the end is detected without growing the buffer.
    let mut bytes = Vec::with_capacity(size.saturating_add(1));
    input.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(wrap)?;
    if bytes.len() as u64 > limit { Err(ReadError::TooLarge(limit)) } else { Ok(bytes) }
}
