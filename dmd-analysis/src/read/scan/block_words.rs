//! The words of a dump's blocks: in memory, or left in the file, where they are read when they are
//! wanted.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::contents::Contents;

/// The size of a word in bytes.
const WORD: usize = 8;

/// The bytes that are read at once where blocks are visited in their order, and of large blocks.
const AT_ONCE: usize = 256 << 10;

/// The distance between the beginnings of windows in bytes.
const STEP: usize = 4 << 10;

/// The most bytes of a block that is read through a window. All of it is in the window in which it
/// begins.
const SMALL: usize = 2 << 10;

/// The bytes of a window: two of them overlap.
const WINDOW: usize = STEP + SMALL;

/// The number of windows that are kept: 6 MiB.
const WINDOWS: usize = 1 << 10;

/// The words of all blocks.
#[derive(Debug)]
pub(crate) enum BlockWords {
    /// In memory. Places are indices of words.
    Memory(Vec<u64>),
    /// In the file of the dump. Places are offsets in bytes.
    File(FileWords),
}

impl Default for BlockWords {
    fn default() -> Self {
        Self::Memory(Vec::new())
    }
}

impl BlockWords {
    /// Returns words of the block at a place, from the word with this number on. Words in a file
    /// are read into `buffer`.
    pub(crate) fn get<'w>(
        &'w self,
        place: u64,
        first: usize,
        count: usize,
        buffer: &'w mut Vec<u64>,
    ) -> &'w [u64] {
        match self {
            Self::Memory(words) => &words[range(place + first as u64, count)],
            Self::File(file) => {
                file.read(place + first as u64 * WORD as u64, count, buffer);
                buffer
            }
        }
    }

    /// Returns the words in memory, of which there are none in a dump whose words are in a file.
    pub(crate) fn memory(&mut self) -> &mut Vec<u64> {
        if let Self::File(_) = self {
            *self = Self::default();
        }
        match self {
            Self::Memory(words) => words,
            Self::File(_) => unreachable!("it has been replaced"),
        }
    }

    /// Reads the words of all blocks into memory.
    ///
    /// # Errors
    ///
    /// The reason if words could not be read from the file.
    pub(crate) fn into_memory(self, contents: &mut [Contents]) -> Result<Vec<u64>, String> {
        let words = match self {
            Self::Memory(words) => return Ok(words),
            words @ Self::File(_) => words,
        };
        let mut all = Vec::new();
        let mut in_order = InOrder::new(&words);
        for own in contents {
            let place = all.len() as u64;
            in_order.visit(own.place(), own.count(), |_, piece| all.extend_from_slice(piece));
            own.move_to(place);
        }
        words.failure().map_or(Ok(all), |reason| Err(reason.to_owned()))
    }

    /// Returns the reason if words could not be read from the file.
    pub(crate) fn failure(&self) -> Option<&str> {
        match self {
            Self::Memory(_) => None,
            Self::File(file) => file.failure.get().map(String::as_str),
        }
    }
}

fn range(place: u64, count: usize) -> Range<usize> {
    let start = usize::try_from(place).unwrap_or(usize::MAX);
    start..start.saturating_add(count)
}

/// The words of blocks in a file.
pub(crate) struct FileWords {
    reader: Mutex<Reader>,
    /// The first error of reading.
    failure: OnceLock<String>,
}

impl fmt::Debug for FileWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileWords").field("failure", &self.failure).finish_non_exhaustive()
    }
}

impl FileWords {
    pub(crate) fn new(file: File) -> Self {
        let windows = std::iter::repeat_with(Window::default).take(WINDOWS).collect();
        Self { reader: Mutex::new(Reader { file, windows }), failure: OnceLock::new() }
    }

    /// Reads words into an empty buffer; fewer if the file has become shorter or unreadable.
    fn read(&self, place: u64, count: usize, buffer: &mut Vec<u64>) {
        buffer.clear();
        let read = self.with_reader(|reader| reader.read(place, count, buffer));
        self.keep_failure(read);
    }

    fn with_reader<T>(&self, read: impl FnOnce(&mut Reader) -> io::Result<T>) -> io::Result<T> {
        read(&mut self.reader.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn keep_failure(&self, read: io::Result<()>) {
        if let Err(error) = read {
            self.failure.get_or_init(|| error.to_string());
        }
    }
}

/// The file, and the parts of it that have been read last.
struct Reader {
    file: File,
    /// By the number of a window, modulo their count.
    windows: Vec<Window>,
}

#[derive(Default)]
struct Window {
    number: u64,
    /// Empty until it has been read.
    bytes: Vec<u8>,
}

impl Reader {
    fn read(&mut self, place: u64, count: usize, buffer: &mut Vec<u64>) -> io::Result<()> {
        let length = count.saturating_mul(WORD);
        if length <= SMALL {
            let (number, from) = window_of(place);
            let bytes = self.window(number)?;
            append(bytes.get(from..from + length).ok_or_else(cut)?, buffer);
            return Ok(());
        }
        buffer.reserve_exact(count);
        let mut bytes = Vec::new();
        let (mut place, mut left) = (place, length);
        while left > 0 {
            let now = left.min(AT_ONCE);
            self.file_bytes(place, now, &mut bytes)?;
            append(bytes.get(..now).ok_or_else(cut)?, buffer);
            place += now as u64;
            left -= now;
        }
        Ok(())
    }

    /// Returns the bytes of a window.
    fn window(&mut self, number: u64) -> io::Result<&[u8]> {
        let slot = usize::try_from(number % WINDOWS as u64).unwrap_or(0);
        let window = &self.windows[slot];
        if window.number != number || window.bytes.is_empty() {
            let mut bytes = std::mem::take(&mut self.windows[slot].bytes);
            self.file_bytes(number * STEP as u64, WINDOW, &mut bytes)?;
            self.windows[slot] = Window { number, bytes };
        }
        Ok(&self.windows[slot].bytes)
    }

    /// Reads bytes into a buffer, fewer at the end of the file.
    fn file_bytes(&mut self, place: u64, count: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        bytes.clear();
        bytes.reserve_exact(count);
        self.file.seek(SeekFrom::Start(place))?;
        self.file.by_ref().take(count as u64).read_to_end(bytes)?;
        Ok(())
    }
}

/// Returns the number of the window in which a byte of the file is, and its place there.
fn window_of(place: u64) -> (u64, usize) {
    let from = usize::try_from(place % STEP as u64).unwrap_or(0);
    (place / STEP as u64, from)
}

fn append(bytes: &[u8], words: &mut Vec<u64>) {
    let as_words = bytes.chunks_exact(WORD);
    words.extend(as_words.map(|word| word.try_into().map_or(0, u64::from_le_bytes)));
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "it has become shorter")
}

/// Visits the words of blocks in the order of the dump. Those of a file are read many at once.
pub(crate) struct InOrder<'w> {
    words: &'w BlockWords,
    /// The part of the file that has been read last.
    bytes: Vec<u8>,
    start: u64,
    piece: Vec<u64>,
}

impl<'w> InOrder<'w> {
    pub(crate) fn new(words: &'w BlockWords) -> Self {
        Self { words, bytes: Vec::new(), start: 0, piece: Vec::new() }
    }

    /// Visits the words of a block in pieces: each with the number of its first word.
    pub(crate) fn visit(&mut self, place: u64, count: usize, mut visit: impl FnMut(u64, &[u64])) {
        let file = match self.words {
            BlockWords::Memory(words) => return visit(0, &words[range(place, count)]),
            BlockWords::File(file) => file,
        };
        let mut done = 0;
        while done < count {
            let now = (count - done).min(AT_ONCE / WORD);
            let place = place + (done * WORD) as u64;
            let read = self.fill(file, place, now * WORD);
            let is_cut = read.is_err();
            file.keep_failure(read);
            if is_cut {
                return;
            }
            self.piece.clear();
            let from = usize::try_from(place - self.start).unwrap_or(usize::MAX);
            append(&self.bytes[from..from + now * WORD], &mut self.piece);
            visit(done as u64, &self.piece);
            done += now;
        }
    }

    /// Reads the part of the file with these bytes, unless they are there already.
    fn fill(&mut self, file: &FileWords, place: u64, length: usize) -> io::Result<()> {
        let has = |start: u64, bytes: &[u8]| {
            place >= start && place + length as u64 <= start + bytes.len() as u64
        };
        if !has(self.start, &self.bytes) {
            let bytes = &mut self.bytes;
            file.with_reader(|reader| reader.file_bytes(place, AT_ONCE, bytes))?;
            self.start = place;
        }
        if has(self.start, &self.bytes) { Ok(()) } else { Err(cut()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// The words of a file: at the byte of number n the word n * 3.
    fn file(words: u64) -> File {
        let name = format!("memreport-block-words-{}-{words}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let bytes: Vec<u8> = (0..words).flat_map(|word| (word * 3).to_le_bytes()).collect();
        File::create(&path).and_then(|mut file| file.write_all(&bytes)).expect("it is written");
        let file = File::options().read(true).write(true).open(&path).expect("it is there");
        std::fs::remove_file(path).expect("it is there");
        file
    }

    fn expected(first: u64, count: usize) -> Vec<u64> {
        (first..).take(count).map(|word| word * 3).collect()
    }

    #[test]
    fn words_of_any_place_and_length_are_those_of_the_file() {
        let words = BlockWords::File(FileWords::new(file(300_000)));
        let mut buffer = Vec::new();
        let mut in_order = InOrder::new(&words);
        let places =
            [(0, 0), (0, 1), (511, 2), (512, 256), (767, 257), (700, 100_000), (299_999, 1)];
        for (first, count) in places {
            assert_eq!(words.get(first * 8, 0, count, &mut buffer), expected(first, count));
            let mut visited = Vec::new();
            in_order.visit(first * 8, count, |number, piece| {
                assert_eq!(number, visited.len() as u64);
                visited.extend_from_slice(piece);
            });
            assert_eq!(visited, expected(first, count), "{count} words from {first} on");
        }
        // Windows whose numbers share a slot.
        for first in [0, 512 * WINDOWS as u64 / 2, 0] {
            assert_eq!(words.get(first * 8, 0, 3, &mut buffer), expected(first, 3));
        }
        assert_eq!(words.failure(), None);
    }

    #[test]
    fn a_file_that_becomes_shorter_is_a_failure() {
        for is_in_order in [false, true] {
            let file = file(1_000);
            file.set_len(4_000).expect("it may be written");
            let words = BlockWords::File(FileWords::new(file));
            let mut buffer = Vec::new();
            assert_eq!(words.get(3_200, 0, 100, &mut buffer), expected(400, 100));
            assert_eq!(words.failure(), None);
            if is_in_order {
                InOrder::new(&words).visit(3_200, 101, |_, _| panic!("not all of it is there"));
            } else {
                assert_eq!(words.get(3_200, 0, 101, &mut buffer), [0; 0]);
            }
            assert_eq!(words.failure(), Some("it has become shorter"));
        }
    }
}
