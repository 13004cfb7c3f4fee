//! The words of a scan's blocks, in memory or copied to a file.

use std::fs::File;
use std::io::{self, Write};

use super::block_words::{BlockWords, FileWords};

/// A function that makes an empty file.
pub(crate) type NewFile<'c> = &'c mut dyn FnMut() -> io::Result<File>;

/// The words that are copied to a file at once: 256 KiB.
pub(super) const AT_ONCE: usize = 32 << 10;

/// The most words that are kept in memory: 64 MiB. A scan that has fewer is not copied.
const MOST_IN_MEMORY: usize = if cfg!(test) { 1000 } else { 8 << 20 };

/// Words that are kept in memory, or copied to a file once there are many.
pub(super) struct CopiedWords<'c> {
    /// Those that are not in the file.
    words: Vec<u64>,
    /// The number of words at which they are moved to the file.
    most: usize,
    new_file: Option<NewFile<'c>>,
    file: Option<File>,
    bytes: Vec<u8>,
}

impl<'c> CopiedWords<'c> {
    pub(super) fn new(new_file: Option<NewFile<'c>>) -> Self {
        let most = if new_file.is_some() { MOST_IN_MEMORY } else { usize::MAX };
        Self { words: Vec::new(), most, new_file, file: None, bytes: Vec::new() }
    }

    /// Returns the list to which at most [`AT_ONCE`] words are appended next. If it is full, it is
    /// written to the file; without a file all words stay in memory.
    pub(super) fn room(&mut self) -> io::Result<&mut Vec<u64>> {
        if self.words.len() >= self.most {
            if let Some(new_file) = self.new_file.take() {
                self.file = new_file().ok();
            }
            self.most = if self.file.is_some() { AT_ONCE } else { usize::MAX };
            self.write()?;
        }
        Ok(&mut self.words)
    }

    fn write(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        for words in self.words.chunks(AT_ONCE) {
            self.bytes.clear();
            self.bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            file.write_all(&self.bytes)?;
        }
        self.words = Vec::with_capacity(2 * AT_ONCE);
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<BlockWords> {
        self.write()?;
        Ok(match self.file {
            Some(file) => BlockWords::File(FileWords::new(file)),
            None => BlockWords::Memory(self.words),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{DEFAULT_LIMIT, Dump, read, read_with_copy};

    /// A scan of blocks with different words, of which one has more words than fit at once.
    fn scan() -> Vec<u8> {
        let json = r##"{"version":5,"invocation":{"dmdEnvVar":null,"mode":"scan"},"blockList":[
            {"req":0,"alloc":"A"}],"traceTable":{"A":["C"]},"frameTable":{"C":"#00: main"},
            "memreport":{"version":1,"needs":["scannedBlocks"],"scannedBlocks":9}}"##;
        let mut scan = [json.as_bytes(), &[0]].concat();
        for block in 0..9_u64 {
            let bytes = if block == 5 { AT_ONCE as u64 * 8 + 16 } else { 24 * block };
            // The block's four numbers, in base 128.
            for mut number in [1 << 24, bytes, 0, 1] {
                while number >= 0x80 {
                    scan.push(number.to_le_bytes()[0] | 0x80);
                    number >>= 7;
                }
                scan.push(number.to_le_bytes()[0]);
            }
            let words = (0..bytes / 8).map(|word| word * 3 + block);
            scan.extend(words.flat_map(u64::to_le_bytes));
        }
        scan
    }

    fn words(dump: &Dump) -> Vec<(usize, Vec<u64>)> {
        let words = |contents| dump.words(&contents, &mut Vec::new()).to_vec();
        dump.contents().map(|contents| (contents.block(), words(contents))).collect()
    }

    fn new_file(path: &std::path::Path) -> io::Result<File> {
        File::options().read(true).write(true).create_new(true).open(path)
    }

    #[test]
    fn words_of_a_large_scan_are_copied_and_the_same() {
        let path = std::env::temp_dir().join(format!("memreport-kept-{}", std::process::id()));
        let in_memory = read(&*scan(), DEFAULT_LIMIT).expect("a dump");
        let mut copy = || new_file(&path);
        let copied = read_with_copy(&*scan(), &mut copy, DEFAULT_LIMIT).expect("a dump");
        assert!(matches!(copied.words, BlockWords::File(_)));
        assert_eq!(words(&in_memory).len(), 8);
        assert!(words(&copied) == words(&in_memory));
        std::fs::remove_file(path).expect("it is there");
        // Without a file, they are in memory.
        let mut none = || Err(io::ErrorKind::PermissionDenied.into());
        let kept = read_with_copy(&*scan(), &mut none, DEFAULT_LIMIT).expect("a dump");
        assert!(matches!(kept.words, BlockWords::Memory(_)));
        assert!(words(&kept) == words(&in_memory));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_an_error_with_its_remedy() {
        let mut full = || File::options().write(true).open("/dev/full");
        let error = read_with_copy(&*scan(), &mut full, DEFAULT_LIMIT).expect_err("it is full");
        let error = error.to_string();
        assert!(error.contains("No space left on device"), "{error}");
        assert!(error.contains("TMPDIR"), "{error}");
    }
}
