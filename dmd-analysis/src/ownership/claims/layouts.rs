//! The layouts of blocks, each kept once: most blocks of a heap share a few.

use rustc_hash::FxHashMap;

use crate::ownership::layout::Layout;
use crate::retention::NONE;
use crate::retention::graph::narrow::NarrowNumbers;

/// The number of a layout, or of none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LayoutId(u32);

impl LayoutId {
    pub(super) const NONE: Self = Self(NONE);

    pub(super) fn is_some(self) -> bool {
        self != Self::NONE
    }
}

/// The layouts of all blocks.
#[derive(Debug)]
pub(in crate::ownership) struct Layouts {
    /// By block.
    of: NarrowNumbers,
    all: Vec<Layout>,
    numbers: FxHashMap<Layout, LayoutId>,
}

impl Layouts {
    /// Makes the layouts of this many blocks: none so far.
    pub(super) fn new(blocks: usize) -> Self {
        Self { of: NarrowNumbers::new(blocks), all: Vec::new(), numbers: FxHashMap::default() }
    }

    /// Returns the layout of a block.
    pub(in crate::ownership) fn get(&self, block: u32) -> Option<Layout> {
        self.all.get(self.id(block).0 as usize).copied()
    }

    pub(super) fn id(&self, block: u32) -> LayoutId {
        LayoutId(self.of.get(block))
    }

    pub(super) fn set(&mut self, block: u32, layout: LayoutId) {
        self.of.set(block, layout.0);
    }

    /// Returns the number of a layout.
    pub(super) fn number(&mut self, layout: Option<Layout>) -> LayoutId {
        let Some(layout) = layout else { return LayoutId::NONE };
        *self.numbers.entry(layout).or_insert_with(|| {
            let next = LayoutId(u32::try_from(self.all.len()).unwrap_or(NONE));
            self.all.push(layout);
            next
        })
    }
}
