//! A dump in memory: blocks, the stacks they name, the frames those name.

use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;

use super::Extension;

/// A dump as read. See `docs/formats.md` for the file.
#[derive(Debug, Default)]
pub struct Dump {
    /// How DMD was started.
    pub invocation: Invocation,
    /// Every record of `blockList`, in the file's order.
    pub blocks: Vec<Block>,
    /// What our own tracker adds; Firefox's dumps have none.
    pub extension: Option<Extension>,
    /// What went wrong when the dump was taken, and what was wrong with it and passed over; as sentences.
    pub notes: Vec<String>,
    /// The frames that stacks are made of.
    pub frames: Vec<Frame>,
    /// Words of blocks (scan mode): one entry for each block that has any.
    pub contents: Vec<Contents>,
    pub(crate) words: Vec<u64>,
    pub(crate) reports: Vec<TraceId>,
    pub(crate) traces: Vec<Box<[FrameId]>>,
}

impl Dump {
    /// The frames of a stack, innermost first.
    #[must_use]
    pub fn trace(&self, id: TraceId) -> &[FrameId] {
        &self.traces[id.index()]
    }

    /// How many stacks the dump names.
    #[must_use]
    pub fn trace_count(&self) -> usize {
        self.traces.len()
    }

    /// Where the block was reported: `None` if it was not.
    #[must_use]
    pub fn reports(&self, block: &Block) -> Option<&[TraceId]> {
        let reports = block.reports.as_ref()?;
        Some(&self.reports[reports.start as usize..reports.end as usize])
    }

    /// The words of a block's contents.
    #[must_use]
    pub fn words(&self, contents: &Contents) -> &[u64] {
        &self.words[contents.words.clone()]
    }
}

/// How DMD was started.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The text of `$DMD`, if it was set.
    pub dmd_env_var: Option<String>,
    /// What was recorded.
    pub mode: Mode,
}

/// What a dump holds.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Live blocks.
    Live,
    /// Live blocks and who reported them.
    #[default]
    DarkMatter,
    /// Live and freed blocks.
    Cumulative,
    /// Live blocks with addresses and contents.
    Scan,
}

/// One record of `blockList`: one or more equal blocks.
#[derive(Debug, Clone)]
pub struct Block {
    /// Bytes asked for.
    pub req: u64,
    /// Bytes that the allocator gave on top.
    pub slop: u64,
    /// How many blocks this record stands for.
    pub num: u64,
    /// Where it starts (scan mode).
    pub addr: Option<NonZeroU64>,
    /// Where it was allocated, if a stack was taken.
    pub alloc: Option<TraceId>,
    /// The thread that allocated it, as an index into the extension's threads.
    pub thread: Option<u32>,
    /// The scope of the program that it was allocated in, as a number of the extension's scopes; 0 is none.
    pub scope: u16,
    /// Of a sampled block: how many like it the block stands for; 1 elsewhere.
    pub weight: f64,
    /// How long ago it was made, in milliseconds, where that was kept: rounded down by up to 9 %.
    pub age_ms: Option<u64>,
    /// The blocks were given back, and are only counted (cumulative mode).
    pub freed: bool,
    /// What holds it, if nobody reports it and that was found.
    pub held_by: Option<HolderId>,
    /// It does so through other unreported blocks, as far as can be told.
    pub is_held_through: bool,
    pub(crate) reports: Option<Range<u32>>,
}

impl Block {
    /// Bytes the program can use: requested and slop.
    #[must_use]
    pub fn usable(&self) -> u64 {
        self.req.saturating_add(self.slop)
    }
}

/// The words of one block's contents.
#[derive(Debug, Clone)]
pub struct Contents {
    /// The block's place in [`Dump::blocks`].
    pub block: usize,
    pub(crate) words: Range<usize>,
}

/// A stack of the dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceId(pub(crate) u32);

impl TraceId {
    /// Its place in the dump's table of stacks.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What holds blocks, as a key of the extension's holders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HolderId(pub(crate) u32);

/// A frame of the dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub(crate) u32);

impl FrameId {
    /// Its place in [`Dump::frames`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One frame: its text, and what the symboliser found out about it.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    /// The text of the dump, `#00: main (src/main.rs:12)`.
    pub text: Box<str>,
    /// What the debug information says, once looked up.
    pub symbol: Option<Box<Symbol>>,
}

/// A function at an address, from debug information or the symbol table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// The function with its path where that is known, `subject::Lexicon::intern`.
    pub function: Arc<str>,
    /// The function's own name with its type arguments, `grow_one<u8, alloc::alloc::Global>`, where debug information has it.
    pub name: Option<Arc<str>>,
    /// Source file, as the compiler saw it.
    pub file: Option<Arc<str>>,
    /// Line in that file, from 1.
    pub line: Option<u32>,
    /// Whether the function was inlined into the next frame.
    pub inlined: bool,
    /// Whether several functions share this code, so that its type arguments prove nothing.
    pub folded: bool,
}
