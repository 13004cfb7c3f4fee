//! Recognises the kind of a file by its beginning, for messages about a file of the wrong kind.

use super::open::{is_stdin, running};
use flate2::read::GzDecoder;
use memreport_analysis::recording;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A kind of file that this program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A memory report.
    Report,
    /// A dump by DMD.
    Dump,
    /// A recording of allocations.
    Recording,
}

/// The number of bytes that distinguish the kinds.
pub(super) const HEAD: u64 = 1 << 16;

impl FileKind {
    /// Returns the kind of a file, `None` if it is no file or of no such kind.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        if is_stdin(path) || running(path).is_some() {
            return None;
        }
        let text = head_of(path)?;
        let has = |word: &str| text.windows(word.len()).any(|part| part == word.as_bytes());
        match () {
            () if recording::is_recording(&text) => Some(FileKind::Recording),
            () if has("\"invocation\"") || has("\"blockList\"") => Some(FileKind::Dump),
            () if has("\"hasMozMallocUsableSize\"") => Some(FileKind::Report),
            () => None,
        }
    }

    /// Returns its name, with an article.
    pub(crate) fn name(self) -> &'static str {
        match self {
            FileKind::Report => "a memory report",
            FileKind::Dump => "a dump of the heap",
            FileKind::Recording => "a recording",
        }
    }

    /// Returns a message for a command that does not read this kind of file: its name, and the
    /// command that reads it.
    pub(crate) fn describe(self, path: &Path) -> String {
        let command = if self == FileKind::Report { "show" } else { "heap tree" };
        let what = self.name();
        format!("this is {what}; show it by `about-memory {command} {}`", path.display())
    }
}

/// Returns the first bytes of a file, unpacked; `None` if it is no file. What is read of a pipe
/// would be gone for the command.
pub(crate) fn head_of(path: &Path) -> Option<Vec<u8>> {
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut head = Vec::new();
    File::open(path).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    Some(text_of(&head))
}

/// Returns the start of a file's text.
pub(super) fn text_of(head: &[u8]) -> Vec<u8> {
    if !head.starts_with(&[0x1f, 0x8b]) {
        return head.to_vec();
    }
    let mut text = Vec::new();
    // The data are cut off, so this fails in the end.
    let _ = GzDecoder::new(head).take(HEAD).read_to_end(&mut text);
    text
}
