//! Reads a large file on a thread of its own, while the parser works on earlier pieces.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// The bytes from which a file is large. Copying as many from the kernel takes 10 ms or more.
pub(super) const LARGE: u64 = if cfg!(test) { 64 << 10 } else { 64 << 20 };

/// The most bytes that are read at once.
const PIECE: usize = 256 << 10;

/// The most pieces that wait.
const WAITING: usize = 4;

/// A file that is read ahead, from its beginning.
#[derive(Debug)]
pub(super) struct ReadAhead {
    pieces: Receiver<io::Result<Vec<u8>>>,
    /// The piece that is read now.
    piece: Cursor<Vec<u8>>,
}

impl ReadAhead {
    /// Begins to read a file. The thread ends with the file, or after this value.
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
    let mut position = 0;
    loop {
        let mut piece = vec![0; PIECE];
        let read = read_at(file, &mut piece, position);
        if read.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {
            continue;
        }
        let is_last = read.as_ref().map_or(true, |length| *length == 0);
        let read = read.map(|length| {
            position += length as u64;
            piece.truncate(length);
            piece
        });
        if pieces.send(read).is_err() || is_last {
            return;
        }
    }
}

/// Reads without the position of the file, which it shares with other handles: these may be in use
/// at the same time.
#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, position)
}

/// Reads from the position of the file, where the last read ended.
#[cfg(not(unix))]
fn read_at(mut file: &File, buffer: &mut [u8], _position: u64) -> io::Result<usize> {
    file.read(buffer)
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
    use std::fmt::Write as _;
    use std::io::{Seek, Write as _};

    use crate::input::dump::DumpReader;

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
    fn a_large_dump_is_read_ahead() {
        let mut json =
            r#"{"version":5,"invocation":{"dmdEnvVar":null,"mode":"live"},"blockList":["#
                .to_owned();
        for size in 1..=5000 {
            let comma = if size == 1 { "" } else { "," };
            write!(json, r#"{comma}{{"req":{size},"alloc":"A"}}"#).expect("a text takes all");
        }
        json += r##"],"traceTable":{"A":["B"]},"frameTable":{"B":"#00: main (main.rs:1)"}}"##;
        assert!(json.len() as u64 > LARGE);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("large.dmd.json");
        std::fs::write(&path, json).expect("it can be written");
        let dump = DumpReader::load(&path).expect("it is a dump");
        assert!(dump.blocks.iter().map(|block| block.req).eq(1..=5000));
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
