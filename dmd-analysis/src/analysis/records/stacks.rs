//! Stacks of records: without allocation functions, cut to a length, and equal if the text of their
//! frames is.

use rustc_hash::FxHashMap;

use crate::analysis::frames::is_allocation;
use crate::read::{Block, Dump, FrameId};

/// The rules by which stacks are made comparable before blocks are grouped by them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Grouping {
    /// The number of frames that are compared, from the innermost.
    pub max_frames: usize,
    /// True if allocation functions at the start of a stack are dropped.
    pub ignore_alloc_fns: bool,
}

impl Default for Grouping {
    fn default() -> Self {
        Self { max_frames: 8, ignore_alloc_fns: false }
    }
}

impl Grouping {
    /// Returns rules that cut stacks to `max_frames` and, if `ignore_alloc_fns`, drop their
    /// allocation functions.
    #[must_use]
    pub fn new(max_frames: usize, ignore_alloc_fns: bool) -> Self {
        Self { max_frames, ignore_alloc_fns }
    }
}

/// A stack in [`Stacks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(u32);

/// A list of stacks in [`Stacks`]: those that reported a block, first report first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListId(u32);

/// The interned stacks of one dump, or of two that are compared: equal stacks have equal ids in
/// both.
#[derive(Debug, Default)]
pub struct Stacks {
    texts: Vec<Box<str>>,
    text_ids: FxHashMap<Box<str>, u32>,
    stacks: Vec<Box<[u32]>>,
    stack_ids: FxHashMap<Box<[u32]>, u32>,
    lists: Vec<Box<[StackId]>>,
    list_ids: FxHashMap<Box<[StackId]>, u32>,
}

/// The text of dmd.py for a block without a stack.
const UNRECORDED: &str = "#00: (no stack trace recorded due to --stacks=partial)";

/// The ids of a dump's stacks.
pub(crate) struct Grouped {
    /// By the index of the dump's stack.
    pub(crate) traces: Vec<StackId>,
    pub(crate) unrecorded: StackId,
}

impl Grouped {
    /// Returns the stack that allocated a block.
    pub(crate) fn alloc_of(&self, block: &Block<'_>) -> StackId {
        block.kind.alloc.map_or(self.unrecorded, |trace| self.traces[trace.index()])
    }
}

impl Stacks {
    /// Returns the frames of a stack, innermost first, with their text in the dump (`#00: main
    /// (main.rs:1)`).
    pub fn frames(&self, id: StackId) -> impl Iterator<Item = &str> {
        self.stacks[id.0 as usize].iter().map(|&text| &*self.texts[text as usize])
    }

    /// Returns the stacks of a list.
    #[must_use]
    pub fn list(&self, id: ListId) -> &[StackId] {
        &self.lists[id.0 as usize]
    }

    /// Interns a list of stacks.
    pub(crate) fn list_id(&mut self, list: &[StackId]) -> ListId {
        if let Some(&id) = self.list_ids.get(list) {
            return ListId(id);
        }
        let id = next_id(self.lists.len());
        self.lists.push(list.into());
        self.list_ids.insert(list.into(), id);
        ListId(id)
    }

    /// Interns the stacks of a dump.
    pub(crate) fn group(&mut self, dump: &Dump, how: &Grouping) -> Grouped {
        let texts: Vec<u32> = dump.frames.iter().map(|frame| self.text(&frame.text)).collect();
        let dropped: Vec<bool> = dump
            .frames
            .iter()
            .map(|frame| how.ignore_alloc_fns && is_allocation(&frame.text))
            .collect();
        let mut stack = |frames: &[FrameId]| {
            let kept =
                frames.iter().skip_while(|frame| dropped[frame.index()]).take(how.max_frames);
            self.stack(kept.map(|frame| texts[frame.index()]).collect())
        };
        let traces = dump.traces.iter().map(|frames| stack(frames)).collect();
        let unrecorded = self.text(UNRECORDED);
        Grouped { traces, unrecorded: self.stack([unrecorded].into()) }
    }

    fn text(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.text_ids.get(text) {
            return id;
        }
        let id = next_id(self.texts.len());
        self.texts.push(text.into());
        self.text_ids.insert(text.into(), id);
        id
    }

    fn stack(&mut self, texts: Box<[u32]>) -> StackId {
        if let Some(&id) = self.stack_ids.get(&texts) {
            return StackId(id);
        }
        let id = next_id(self.stacks.len());
        self.stacks.push(texts.clone());
        self.stack_ids.insert(texts, id);
        StackId(id)
    }
}

/// Returns the next id. Ids stay below 2^32: each takes more than one byte of a text of limited
/// length.
fn next_id(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
