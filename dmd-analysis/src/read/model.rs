//! A dump in memory: its blocks, stacks and frames.

use std::sync::Arc;

use super::block::list::BlockList;
use super::block::{Block, TraceId};
use super::extension::Extension;
use super::scan::block_words::{BlockWords, InOrder};
use super::scan::contents::{Contents, ContentsTable};

/// The most frames of a stack: trees of stacks are built by recursion, and indented by depth.
pub(crate) const MOST_FRAMES: usize = 1024;

/// Returns the note about this number of stacks with more than [`MOST_FRAMES`] frames.
pub(crate) fn cut_stacks_note(count: usize) -> Option<String> {
    let (stacks, whose) = match count {
        0 => return None,
        1 => ("stack has", "its"),
        _ => ("stacks have", "their"),
    };
    Some(format!(
        "{count} {stacks} more than {MOST_FRAMES} frames; {whose} outermost frames are left out"
    ))
}

/// A dump. `docs/guide/src/reference/formats.md` describes the file format.
#[derive(Debug, Default)]
pub struct Dump {
    /// The options of DMD.
    pub invocation: Invocation,
    /// Every entry of `blockList`, in the order of the file.
    pub blocks: BlockList,
    /// The fields that our tracker adds, which Firefox's dumps lack.
    pub extension: Option<Extension>,
    /// The problems while the dump was taken, and the defects that were ignored while it was read;
    /// as sentences.
    pub notes: Vec<String>,
    /// The frames that stacks are made of.
    pub frames: Vec<Frame>,
    pub(crate) contents: ContentsTable,
    pub(crate) words: BlockWords,
    pub(crate) reports: Vec<TraceId>,
    pub(crate) traces: Vec<Box<[FrameId]>>,
}

impl Dump {
    /// Returns the frames of a stack, innermost first.
    #[must_use]
    pub fn trace(&self, id: TraceId) -> &[FrameId] {
        &self.traces[id.index()]
    }

    /// Returns the number of stacks.
    #[must_use]
    pub fn trace_count(&self) -> usize {
        self.traces.len()
    }

    /// Returns the stacks that reported a block, or `None` if none did.
    #[must_use]
    pub fn reports(&self, block: &Block<'_>) -> Option<&[TraceId]> {
        let reports = block.kind.reports.as_ref()?;
        Some(&self.reports[reports.start as usize..reports.end as usize])
    }

    /// Returns the contents of blocks (scan mode), in the order of the blocks: one entry for each
    /// block that has any.
    pub fn contents(&self) -> impl Iterator<Item = Contents> {
        self.contents.iter(|block| self.blocks.numbers(block).req)
    }

    /// Returns the contents of the block with this index, if it has any.
    #[must_use]
    pub fn contents_of(&self, block: usize) -> Option<Contents> {
        self.contents.of(block, |block| self.blocks.numbers(block).req)
    }

    /// Returns the words of a block's contents. If the dump was [read with its
    /// file](super::read_with_file), they are read from there into `buffer`, and are fewer if that
    /// fails, as [`lost_words`](Self::lost_words) then tells.
    pub fn words<'w>(&'w self, contents: &Contents, buffer: &'w mut Vec<u64>) -> &'w [u64] {
        self.words.get(contents.place(), 0, contents.count(), buffer)
    }

    /// Returns `count` words of a block's contents from word `first` on; fewer at their end. See
    /// [`words`](Self::words).
    pub(crate) fn words_from<'w>(
        &'w self,
        contents: &Contents,
        first: usize,
        count: usize,
        buffer: &'w mut Vec<u64>,
    ) -> &'w [u64] {
        let first = first.min(contents.count());
        let count = count.min(contents.count() - first);
        self.words.get(contents.place(), first, count, buffer)
    }

    /// Returns whether the words are read from a file when they are needed.
    pub(crate) fn has_words_in_file(&self) -> bool {
        matches!(self.words, BlockWords::File(_))
    }

    /// Returns the reason if words of blocks could not be read from the dump's file.
    #[must_use]
    pub fn lost_words(&self) -> Option<&str> {
        self.words.failure()
    }

    /// Visits the words of blocks in pieces: each with the number of its first word in the block.
    /// Those of a file are read many at once if blocks are visited in the order of the dump.
    pub(crate) fn words_in_order(&self) -> InOrder<'_> {
        InOrder::new(&self.words)
    }
}

/// The options of DMD when the dump was taken.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The text of `$DMD`, if it was set.
    pub dmd_env_var: Option<String>,
    /// The kind of blocks that the dump contains.
    pub mode: Mode,
}

/// The kind of blocks that a dump contains.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Live blocks.
    Live,
    /// Live blocks with their reports.
    #[default]
    DarkMatter,
    /// Live and freed blocks.
    Cumulative,
    /// Live blocks with addresses and contents.
    Scan,
}

/// A frame of the dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub(crate) u32);

impl FrameId {
    /// Returns its index in [`Dump::frames`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One frame: its text, and its symbol if it was looked up.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    /// The text in the dump, `#00: main (src/main.rs:12)`.
    pub text: Box<str>,
    /// The function at its address, if it was looked up.
    pub symbol: Option<Box<Symbol>>,
}

/// A function at an address, from debug information or the symbol table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// The function, with its path if that is known: `subject::Lexicon::intern`.
    pub function: Arc<str>,
    /// The function's name with type arguments, `grow_one<u8, alloc::alloc::Global>`, if debug
    /// information has it.
    pub name: Option<Arc<str>>,
    /// The path of the source file in debug information.
    pub file: Option<Arc<str>>,
    /// The line in that file, from 1.
    pub line: Option<u32>,
    /// True if the function was inlined into the next frame.
    pub inlined: bool,
    /// True if several functions share this code, so that its name's type arguments may be wrong.
    pub folded: bool,
    /// The path of the program or library with the code.
    pub module: Option<Arc<str>>,
}
