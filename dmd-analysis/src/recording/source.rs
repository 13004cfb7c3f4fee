//! The bytes of a recording. They are read again for each question about its blocks, of which there
//! may be more than fit into memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

use super::RecordingError;
use crate::read::Unpacker;

/// The bytes that are read or unpacked at once.
const BUFFER: usize = 256 << 10;

/// The bytes of a recording, as they are in its file.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Memory(Arc<[u8]>),
    /// The first bytes of a file.
    File(FilePart),
}

impl Default for Source {
    fn default() -> Self {
        Self::Memory(Arc::default())
    }
}

impl Source {
    /// Returns the bytes from the first one on, unpacked.
    pub(super) fn open(&self) -> Result<Box<dyn BufRead + '_>, RecordingError> {
        match self {
            Self::Memory(bytes) => unpacked(&bytes[..]),
            Self::File(part) => unpacked(part.clone()),
        }
    }
}

/// Unpacks the bytes of a recording that may be gzipped.
pub(super) fn unpacked<'r>(input: impl Read + 'r) -> Result<Box<dyn BufRead + 'r>, RecordingError> {
    let mut input = BufReader::with_capacity(BUFFER, input);
    let is_gzip = input.fill_buf().map_err(RecordingError::Io)?.starts_with(&[0x1f, 0x8b]);
    Ok(match is_gzip {
        true => Box::new(BufReader::with_capacity(BUFFER, Unpacker::new(input))),
        false => Box::new(input),
    })
}

/// The bytes of a file from its first one up to one that was the last.
#[derive(Clone, Debug)]
pub(super) struct FilePart {
    /// Its position is set anew for each read.
    file: Arc<Mutex<File>>,
    next: u64,
    end: u64,
}

impl FilePart {
    pub(super) fn new(file: File, end: u64) -> Self {
        Self { file: Arc::new(Mutex::new(file)), next: 0, end }
    }
}

impl Read for FilePart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.next))?;
        let count = file.by_ref().take(self.end - self.next).read(buffer)?;
        self.next += count as u64;
        Ok(count)
    }
}

/// A reader that counts what is read.
pub(super) struct Counted<R> {
    input: R,
    pub(super) count: u64,
}

impl<R> Counted<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, count: 0 }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.count += count as u64;
        Ok(count)
    }
}
