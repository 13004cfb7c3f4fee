//! Bytes that are written once: in memory as long as they are few, then in a file.
//!
//! A dump with the contents of all blocks is about as big as the heap, and to take it must not
//! double the memory of the program.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::files::unnamed_file;

/// The most bytes in memory.
const MOST_IN_MEMORY: u64 = if cfg!(test) { 64 << 10 } else { 16 << 20 };

/// Bytes that were written.
#[derive(Debug)]
pub(crate) enum Spooled {
    /// They are in memory.
    Memory(Vec<u8>),
    /// They are in a file without a name, which is gone when it is closed.
    File {
        /// The file, from its beginning.
        file: File,
        /// The number of bytes.
        length: u64,
    },
}

impl Spooled {
    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File { length, .. } => *length,
        }
    }
}

/// A writer of few or many bytes.
#[derive(Debug)]
pub(super) struct Spool {
    /// The folder for a file. If none can be made there, all bytes stay in memory.
    folder: PathBuf,
    has_no_file: bool,
    written: Spooled,
}

impl Spool {
    /// Creates an empty one, whose file would be in `folder`.
    pub(super) fn new(folder: PathBuf) -> Self {
        Spool { folder, has_no_file: false, written: Spooled::Memory(Vec::new()) }
    }

    /// Returns the bytes.
    pub(super) fn into_written(self) -> Spooled {
        self.written
    }

    /// Moves the bytes in the file to memory, where the rest follows.
    fn move_to_memory(&mut self) -> io::Result<()> {
        let Spooled::File { file, length } = &self.written else { return Ok(()) };
        let mut bytes = vec![0; usize::try_from(*length).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut bytes, 0)?;
        self.written = Spooled::Memory(bytes);
        self.has_no_file = true;
        Ok(())
    }

    /// Moves the bytes in memory to a new file.
    fn move_to_file(&mut self) -> io::Result<()> {
        let Spooled::Memory(bytes) = &self.written else { return Ok(()) };
        let mut file = unnamed_file(&self.folder, "memreport-dump")?;
        file.write_all(bytes)?;
        self.written = Spooled::File { file, length: bytes.len() as u64 };
        Ok(())
    }
}

impl Write for Spool {
    /// Writes the bytes. If the file takes no more, as on a full disk, all go on in memory.
    ///
    /// # Errors
    ///
    /// If the file can be neither written nor read. The message names its folder.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_in_memory = matches!(self.written, Spooled::Memory(_));
        let is_large = self.written.len() + bytes.len() as u64 > MOST_IN_MEMORY;
        if is_in_memory && is_large && !self.has_no_file {
            self.has_no_file = self.move_to_file().is_err();
        }
        match &mut self.written {
            Spooled::Memory(memory) => memory.write(bytes),
            Spooled::File { file, length } => match file.write(bytes) {
                Ok(count) => {
                    *length += count as u64;
                    Ok(count)
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
                Err(_) => {
                    self.move_to_memory().map_err(|error| {
                        let folder = self.folder.display();
                        let reason = format!("the dump in {folder} ($TMPDIR): {error}");
                        io::Error::new(error.kind(), reason)
                    })?;
                    self.write(bytes)
                }
            },
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spooled(folder: PathBuf, pieces: usize) -> (Spooled, Vec<u8>) {
        let mut spool = Spool::new(folder);
        let mut expected = Vec::new();
        for piece in 0..pieces {
            let bytes = [u8::try_from(piece % 251).expect("it is small"); 1000];
            spool.write_all(&bytes).expect("there is room");
            expected.extend(bytes);
        }
        (spool.into_written(), expected)
    }

    #[test]
    fn few_bytes_stay_in_memory_and_many_are_in_a_file() {
        for (pieces, is_file) in [(0, false), (65, false), (66, true), (500, true)] {
            let (written, expected) = spooled(std::env::temp_dir(), pieces);
            assert_eq!(written.len(), expected.len() as u64);
            match written {
                Spooled::Memory(bytes) => assert!(!is_file && bytes == expected, "{pieces}"),
                Spooled::File { file, .. } => {
                    let mut read = vec![0; expected.len()];
                    file.read_exact_at(&mut read, 0).expect("it can be read");
                    assert!(is_file && read == expected, "{pieces}");
                }
            }
        }
    }

    #[test]
    fn if_the_file_takes_no_more_all_bytes_are_in_memory() {
        let path = std::env::temp_dir().join(format!("memreport-spool-{}", std::process::id()));
        std::fs::write(&path, b"abc").expect("it is written");
        // A file that is open for reading alone.
        let file = File::open(&path).expect("it is there");
        std::fs::remove_file(&path).expect("it is there");
        let mut spool = Spool::new(std::env::temp_dir());
        spool.written = Spooled::File { file, length: 3 };
        spool.write_all(&[b'd'; 200_000]).expect("there is memory");
        spool.write_all(b"e").expect("there is memory");
        let expected = [&b"abc"[..], &[b'd'; 200_000], b"e"].concat();
        assert!(matches!(spool.into_written(), Spooled::Memory(bytes) if bytes == expected));
    }

    #[test]
    fn without_a_folder_all_bytes_stay_in_memory() {
        let (written, expected) = spooled("/no/such/folder".into(), 200);
        assert!(matches!(written, Spooled::Memory(bytes) if bytes == expected));
    }
}
