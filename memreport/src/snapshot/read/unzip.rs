//! Unzips within a budget: a file that unzips to much more than it is, is refused.

use std::error::Error;
use std::fmt;
use std::io::{self, Read};

use flate2::read::GzDecoder;

/// The bytes that every file may unzip to.
const FREE: u64 = 16 << 20;

/// Beyond [`FREE`], the unzipped bytes for each byte of the file. Memory reports have 10 to 30.
const RATIO: u64 = 100;

/// A decoder of gzip data. It fails with [`Bomb`] beyond its budget.
pub(super) struct Unzip<R> {
    decoder: GzDecoder<Counted<R>>,
    unzipped: u64,
}

impl<R: Read> Unzip<R> {
    pub(super) fn new(input: R) -> Self {
        Unzip { decoder: GzDecoder::new(Counted { input, count: 0 }), unzipped: 0 }
    }
}

impl<R: Read> Read for Unzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.decoder.read(buffer)?;
        self.unzipped += count as u64;
        if self.unzipped > FREE.max(self.decoder.get_ref().count.saturating_mul(RATIO)) {
            return Err(io::Error::other(Bomb));
        }
        Ok(count)
    }
}

struct Counted<R> {
    input: R,
    count: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.count += count as u64;
        Ok(count)
    }
}

/// The error of data that unzips to more than the budget.
#[derive(Debug)]
pub(super) struct Bomb;

impl fmt::Display for Bomb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "it unzips to more than {RATIO} times its size, as no memory report does; \
             if you trust it, unzip it first"
        )
    }
}

impl Error for Bomb {}
