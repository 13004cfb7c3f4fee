//! Reads a large file on a thread of its own, while what it has read is looked at.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// The bytes from which a file is large. Copying as many from the kernel takes 10 ms or more.
pub(super) const LARGE: u64 = 64 << 20;

/// The bytes that are read at once.
const PIECE: u64 = 256 << 10;

/// The most pieces that wait.
const WAITING: usize = 4;

/// A file that is read ahead.
#[derive(Debug)]
pub(super) struct ReadAhead {
    pieces: Receiver<io::Result<Vec<u8>>>,
    /// The piece that is read now.
    piece: Cursor<Vec<u8>>,
}

impl ReadAhead {
    /// Begins to read a file, from its position on. The thread ends with the file, or after this
    /// value.
    ///
    /// # Errors
    ///
    /// If there is no thread for it.
    pub(super) fn start(file: File) -> io::Result<Self> {
        let (sender, pieces) = sync_channel(WAITING);
        thread::Builder::new().name("read-ahead".to_owned()).spawn(move || send(&file, &sender))?;
        Ok(ReadAhead { pieces, piece: Cursor::default() })
    }
}

/// Sends the pieces of a file, until it ends, fails, or nobody receives them.
fn send(file: &File, pieces: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut piece = Vec::new();
        let read = file.take(PIECE).read_to_end(&mut piece);
        let is_last = read.as_ref().map_or(true, |length| *length == 0);
        if pieces.send(read.map(|_| piece)).is_err() || is_last {
            return;
        }
    }
}

impl Read for ReadAhead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let length = self.piece.read(buffer)?;
            if length > 0 || buffer.is_empty() {
                return Ok(length);
            }
            match self.pieces.recv() {
                Ok(piece) => self.piece = Cursor::new(piece?),
                Err(_) => return Ok(0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};

    #[test]
    fn a_file_is_read_whole() {
        for length in [0, 1, (1 << 20) - 1, 1 << 20, (5 << 20) + 3_usize] {
            let bytes: Vec<u8> = (0..251).cycle().take(length).collect();
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(&bytes).expect("written");
            file.rewind().expect("a file has a position");
            let mut ahead = ReadAhead::start(file).expect("a thread");
            let mut read = Vec::new();
            ahead.read_to_end(&mut read).expect("it can be read");
            assert!(read == bytes, "{length}");
            assert_eq!(ahead.read(&mut [0; 9]).expect("nothing fails at the end"), 0);
        }
    }

    #[test]
    #[cfg(unix)]
    fn an_error_is_passed_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let unreadable = File::open(folder.path()).expect("a folder can be opened");
        let mut ahead = ReadAhead::start(unreadable).expect("a thread");
        let error = ahead.read(&mut [0; 9]).expect_err("a folder cannot be read");
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
    }
}
