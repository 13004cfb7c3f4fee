//! Reads a large file on threads of its own, while the parser works on earlier pieces.
//!
//! Copying from the kernel takes longer than parsing, so that one thread would be waited for.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

/// The bytes from which a file is large. Copying as many from the kernel takes 10 ms or more.
pub(super) const LARGE: u64 = if cfg!(test) { 64 << 10 } else { 64 << 20 };

/// The bytes of each piece but the last one.
const PIECE: usize = 256 << 10;

/// The number of threads, each of which reads every so many-th piece.
const THREADS: usize = if cfg!(unix) { 2 } else { 1 };

/// The most pieces of a thread that wait.
const WAITING: usize = 2;

/// A file that is read ahead, from its beginning.
#[derive(Debug)]
pub(super) struct ReadAhead {
    threads: Vec<Pieces>,
    /// The number of pieces that were taken.
    taken: usize,
    /// The piece that is read now.
    piece: Cursor<Vec<u8>>,
    is_last: bool,
}

/// The pieces of one thread.
#[derive(Debug)]
struct Pieces {
    filled: Receiver<io::Result<Vec<u8>>>,
    /// Pieces that have been read, to be filled again.
    read: Sender<Vec<u8>>,
}

impl ReadAhead {
    /// Begins to read a file. The threads end with the file, or after this value.
    ///
    /// # Errors
    ///
    /// If there is no thread for it.
    pub(super) fn start(file: File) -> io::Result<Self> {
        let file = Arc::new(file);
        let threads = (0..THREADS).map(|first| {
            let (sender, filled) = sync_channel(WAITING);
            let (read, empty) = channel();
            let file = Arc::clone(&file);
            let thread = thread::Builder::new().name("read-ahead".to_owned());
            thread.spawn(move || send(&file, first, &sender, &empty))?;
            Ok(Pieces { filled, read })
        });
        let threads = threads.collect::<io::Result<_>>()?;
        Ok(ReadAhead { threads, taken: 0, piece: Cursor::default(), is_last: false })
    }

    /// Takes the next piece.
    fn take(&mut self) -> io::Result<()> {
        // If reading it fails, nothing follows.
        self.is_last = true;
        let count = self.threads.len();
        if let Some(before) = self.taken.checked_sub(1) {
            let piece = std::mem::take(&mut self.piece).into_inner();
            // A thread that has ended needs no further piece.
            let _ = self.threads[before % count].read.send(piece);
        }
        let next = self.threads[self.taken % count].filled.recv();
        let piece = next.map_err(|_| io::Error::other("a thread that reads has ended"))??;
        self.taken += 1;
        self.is_last = piece.len() < PIECE;
        self.piece = Cursor::new(piece);
        Ok(())
    }
}

/// Sends each [`THREADS`]-th piece of a file from `first` on, until it ends, fails, or nobody
/// receives them.
fn send(
    file: &File,
    first: usize,
    filled: &SyncSender<io::Result<Vec<u8>>>,
    empty: &Receiver<Vec<u8>>,
) {
    for index in (first..).step_by(THREADS) {
        let mut piece = empty.try_recv().unwrap_or_default();
        piece.resize(PIECE, 0);
        let read = fill(file, &mut piece, index as u64 * PIECE as u64).map(|length| {
            piece.truncate(length);
            piece
        });
        let is_last = read.as_ref().map_or(true, |piece| piece.len() < PIECE);
        if filled.send(read).is_err() || is_last {
            return;
        }
    }
}

/// Reads a whole piece, or what the file has of it. Returns its length.
fn fill(file: &File, piece: &mut [u8], position: u64) -> io::Result<usize> {
    let mut length = 0;
    while length < piece.len() {
        match read_at(file, &mut piece[length..], position + length as u64) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
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
            if length > 0 || buffer.is_empty() || self.is_last {
                return Ok(length);
            }
            self.take()?;
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
