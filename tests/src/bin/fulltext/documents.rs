//! The documents: packed texts, with the path and the lines of each.
#![forbid(unsafe_code)]

use std::io::{self, Read};
use std::path::Path;

use flate2::read::DeflateDecoder;
use flate2::{Compress, Compression, FlushCompress, Status};
use memreport::{MallocSizeOf, Ops};

use crate::varint;

/// One file.
#[derive(Debug, MallocSizeOf)]
pub(crate) struct Document {
    /// The path below the indexed folder.
    path: Box<Path>,
    /// The length in bytes.
    size: u32,
    words: u32,
    /// The ends of lines, ascending.
    line_ends: Box<[u8]>,
    packed: Box<[u8]>,
}

impl Document {
    pub(crate) fn new(path: &Path, text: &str, words: u32, packer: &mut Packer) -> Self {
        let ends = text.bytes().zip(0..).filter(|(byte, _)| *byte == b'\n').map(|(_, at)| at);
        let mut line_ends = Vec::new();
        varint::write_ascending(&mut line_ends, ends);
        Document {
            path: path.into(),
            size: u32::try_from(text.len()).expect("bigger files are left out"),
            words,
            line_ends: line_ends.into(),
            packed: packer.pack(text.as_bytes()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Measures only the path.
    pub(crate) fn add_path<'a>(&'a self, ops: &Ops<'a>) {
        ops.add(&self.path);
    }

    pub(crate) fn words(&self) -> u32 {
        self.words
    }

    pub(crate) fn text(&self) -> io::Result<String> {
        let mut text = String::with_capacity(self.size as usize);
        DeflateDecoder::new(&*self.packed).read_to_string(&mut text)?;
        Ok(text)
    }

    /// Returns the number of the line that contains the byte at `offset`, from 1, and the line's
    /// offset.
    pub(crate) fn line(&self, offset: usize) -> (usize, usize) {
        let (mut bytes, mut line, mut begin, mut end) = (&*self.line_ends, 1, 0, 0);
        while let Some(distance) = varint::read(&mut bytes) {
            end += distance as usize;
            if end >= offset {
                break;
            }
            (line, begin) = (line + 1, end + 1);
        }
        (line, begin)
    }
}

/// A packer of texts, one after the other.
#[derive(Debug, MallocSizeOf)]
pub(crate) struct Packer {
    #[malloc_size_of(
        ignore = "the window of flate2, which does not show its blocks; gone once the index is built"
    )]
    compress: Compress,
    packed: Vec<u8>,
}

impl Packer {
    pub(crate) fn new() -> Self {
        Packer { compress: Compress::new(Compression::fast(), false), packed: Vec::new() }
    }

    fn pack(&mut self, text: &[u8]) -> Box<[u8]> {
        self.compress.reset();
        self.packed.clear();
        loop {
            let done = usize::try_from(self.compress.total_in()).expect("less than was given");
            self.packed.reserve((text.len() - done) / 2 + 64);
            let rest = &text[done..];
            let finish = FlushCompress::Finish;
            // It fails only for a wrong window size or a missing dictionary.
            let status = self.compress.compress_vec(rest, &mut self.packed, finish);
            if status.expect("a new compressor works") == Status::StreamEnd {
                return self.packed.as_slice().into();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        Document::new(Path::new("src/lib.rs"), text, 3, &mut Packer::new())
    }

    #[test]
    fn a_text_is_unpacked_as_it_was() -> io::Result<()> {
        for text in ["", "a", "fn main() {}\n", &"heap memory\n".repeat(10_000)] {
            assert_eq!(document(text).text()?, text);
        }
        Ok(())
    }

    #[test]
    fn one_packer_packs_many_texts() -> io::Result<()> {
        let mut packer = Packer::new();
        for number in 0..3 {
            let text = format!("{number}").repeat(5000 * number);
            assert_eq!(Document::new(Path::new("a"), &text, 0, &mut packer).text()?, text);
        }
        Ok(())
    }

    #[test]
    fn lines_are_found_by_offset() {
        let document = document("ab\n\ncd\ne");
        let table = [(0, (1, 0)), (2, (1, 0)), (3, (2, 3)), (4, (3, 4)), (6, (3, 4)), (7, (4, 7))];
        for (offset, line) in table {
            assert_eq!(document.line(offset), line, "{offset}");
        }
    }

    #[test]
    fn a_document_reports_all_it_owns() {
        dmd::assert_fully_reported!(document("fn main() {}\n"));
    }
}
