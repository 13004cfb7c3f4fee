//! An answer on its way to the clients: in memory, and a large dump in a file.

use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use super::commands::Answer;
use super::protocol::{self, Part};
use crate::snapshot::spool::Spooled;

/// The bytes that are read from a file at once.
const PIECE: usize = 64 << 10;

/// The result of a job: named pieces, or a sentence.
pub(super) type Outcome = Result<Vec<Piece>, String>;

/// A named piece of an answer.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) name: String,
    pub(super) contents: Spooled,
}

impl From<Part> for Piece {
    fn from(Part { name, bytes }: Part) -> Self {
        Piece { name, contents: Spooled::Memory(bytes) }
    }
}

/// Returns the outcome of a job whose answer is in memory.
pub(super) fn outcome(answer: Answer) -> Outcome {
    answer.map(|parts| parts.into_iter().map(Piece::from).collect())
}

/// The bytes of an answer.
#[derive(Debug)]
pub(super) struct Reply {
    /// The header, then the pieces.
    contents: Vec<Spooled>,
    length: u64,
}

impl Reply {
    /// Encodes an outcome for the socket.
    pub(super) fn new(outcome: Outcome) -> Self {
        let length = |piece: &Piece| usize::try_from(piece.contents.len()).unwrap_or(usize::MAX);
        let header = match &outcome {
            Ok(pieces) => {
                Ok(pieces.iter().map(|piece| (piece.name.clone(), length(piece))).collect())
            }
            Err(message) => Err(message.clone()),
        };
        let header = Spooled::Memory(protocol::encode(header).into_bytes());
        let pieces = outcome.into_iter().flatten().map(|piece| piece.contents);
        let contents: Vec<_> = [header].into_iter().chain(pieces).collect();
        let length = contents.iter().map(Spooled::len).sum();
        Reply { contents, length }
    }

    /// Returns the number of bytes.
    pub(super) fn len(&self) -> u64 {
        self.length
    }

    /// Writes bytes from this position on, as many as `to` takes at once. Returns their number,
    /// which is 0 only at the end.
    ///
    /// # Errors
    ///
    /// Returns errors of `to`, and of the file of a dump.
    pub(super) fn write_from(&self, mut position: u64, to: &mut impl Write) -> io::Result<usize> {
        for contents in &self.contents {
            if position >= contents.len() {
                position -= contents.len();
                continue;
            }
            return match contents {
                Spooled::Memory(bytes) => {
                    let from = usize::try_from(position).unwrap_or(usize::MAX);
                    to.write(bytes.get(from..).unwrap_or(&[]))
                }
                Spooled::File { file, .. } => {
                    let mut piece = vec![0; PIECE];
                    match file.read_at(&mut piece, position)? {
                        0 => Err(io::ErrorKind::UnexpectedEof.into()),
                        length => to.write(&piece[..length]),
                    }
                }
            };
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer that takes a few bytes at once.
    struct Slow(Vec<u8>, usize);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(&bytes[..bytes.len().min(self.1)])
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_answer_of_memory_and_files_is_sent_as_one() {
        let path = std::env::temp_dir().join(format!("memreport-reply-{}", std::process::id()));
        let dump: Vec<u8> = (0..251).cycle().take(3 * PIECE + 7).collect();
        std::fs::write(&path, &dump).expect("it is written");
        let file = std::fs::File::open(&path).expect("it is there");
        std::fs::remove_file(&path).expect("it is there");
        let piece = |name: &str, contents| Piece { name: name.to_owned(), contents };
        let reply = Reply::new(Ok(vec![
            piece("report", Spooled::Memory(b"abc".to_vec())),
            piece("empty", Spooled::Memory(Vec::new())),
            piece("dump", Spooled::File { file, length: dump.len() as u64 }),
            piece("end", Spooled::Memory(b"z".to_vec())),
        ]));
        let names = [("report", 3), ("empty", 0), ("dump", dump.len()), ("end", 1)];
        let names = names.map(|(name, length)| (name.to_owned(), length)).to_vec();
        let expected = [protocol::encode(Ok(names)).as_bytes(), b"abc", &dump, b"z"].concat();
        for most in [1000, usize::MAX] {
            let mut sent = Slow(Vec::new(), most);
            loop {
                let position = sent.0.len() as u64;
                if reply.write_from(position, &mut sent).expect("nothing fails") == 0 {
                    break;
                }
            }
            assert!(sent.0 == expected && reply.len() == expected.len() as u64, "{most}");
        }
    }
}
