//! Finds the holders of each block: from the roots on, the strongest pointers first.

mod layouts;
mod rest;
pub(super) mod stack_types;
mod unused;

use std::collections::VecDeque;

use crate::analysis::frames::Sites;
use crate::analysis::scan::links::{BlockAddress, BlockRanges};
use crate::read::{Dump, StaticPlace};
use crate::retention::NONE;

use super::layout::{Layout, Pointee, Words};
use super::roots::{Roots, Source, Word};
use super::shape::{LabelId, STRENGTHS, Shapes, Slot, Strength};
use layouts::{LayoutId, Layouts};
use stack_types::StackTypes;
use unused::Unused;

/// The words of a static that are known before one that leads to a block.
pub(super) const WORDS_BEFORE: u64 = 3;

/// A pointer from one node to a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) strength: Strength,
    pub(super) label: LabelId,
    /// The number of times that the holder had got a layout before.
    generation: u8,
}

impl Edge {
    /// Returns the nodes that it leads from and to.
    pub(super) fn ends(&self) -> (u32, u32) {
        (self.from, self.to)
    }
}

/// The evidence for the way from a root to a block, the best first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Through typed fields.
    #[default]
    Typed,
    /// Also through words that may be pointers.
    Words,
    /// Also through such words of a library's function.
    LibraryStackWords,
    /// Not from a root of the dump.
    Unrooted,
}

/// A pointer that is followed later.
#[derive(Debug, Clone, Copy)]
struct Pending {
    from: u32,
    to: u32,
    layout: LayoutId,
}

/// The holders and the layout of each block.
pub(super) struct Claims<'a, 'd, 't> {
    dump: &'d Dump,
    ranges: &'a BlockRanges<'d>,
    sites: &'a Sites,
    pub(super) shapes: Shapes<'t>,
    stack_types: StackTypes<'a>,
    /// The difference between addresses in memory and in the program's file.
    bias: u64,
    /// By block: the first pointer that reached it, or [`NONE`] for none.
    pub(super) reached_from: Vec<u32>,
    /// By block: the evidence for its way from a root.
    ranks: Vec<Rank>,
    /// By block: whether its way begins at a stack or a register.
    is_below_stack: Vec<bool>,
    pub(super) layouts: Layouts,
    generations: Vec<u8>,
    queues: [VecDeque<Pending>; STRENGTHS],
    /// The weakest pointers that are followed so far.
    weakest: Strength,
    pub(super) edges: Vec<Edge>,
    /// The blocks, each after its predecessor on the way from a root.
    pub(super) order: Vec<u32>,
    /// True if what holds a block is in the dump, whatever it is. Else a stale word holds nothing:
    /// a stack is as likely.
    has_all_roots: bool,
    /// The number of the node that holds what no root reaches.
    external: u32,
    /// The heads of what no root reaches: the block, and whether it is in a cycle.
    pub(super) heads: Vec<u32>,
}

impl<'a, 'd, 't> Claims<'a, 'd, 't> {
    pub(super) fn new(
        dump: &'d Dump,
        ranges: &'a BlockRanges<'d>,
        sites: &'a Sites,
        shapes: Shapes<'t>,
        roots: &Roots<'_>,
    ) -> Self {
        let blocks = dump.blocks.len();
        Self {
            dump,
            ranges,
            sites,
            bias: bias(dump, &shapes.types.module),
            stack_types: StackTypes::new(sites, shapes.types),
            shapes,
            reached_from: vec![NONE; blocks],
            ranks: vec![Rank::default(); blocks],
            is_below_stack: vec![false; blocks],
            layouts: Layouts::new(blocks),
            generations: vec![0; blocks],
            queues: Default::default(),
            weakest: Strength::Weak,
            edges: Vec::new(),
            order: Vec::new(),
            has_all_roots: dump.extension.as_ref().is_some_and(|ours| ours.has_all_roots),
            external: roots.external,
            heads: Vec::new(),
        }
    }

    /// Follows all pointers from the roots, and then from what no root reaches.
    pub(super) fn follow(&mut self, roots: &Roots<'_>) {
        let (named, other): (Vec<_>, Vec<_>) = roots
            .sources
            .iter()
            .zip(roots.first..)
            .partition(|(source, _)| source.name != StaticPlace::OTHER_MEMORY);
        for (source, from) in named {
            for word in &source.words {
                self.follow_root(source, from, word);
            }
        }
        self.run();
        // Such memory may be anything, also a table of all blocks. It holds only the rest.
        for (source, from) in other {
            for word in &source.words {
                let block = self.ranges.block_at(word.to).map(|found| found.block as usize);
                if block.is_some_and(|block| self.reached_from[block] == NONE) {
                    self.follow_root(source, from, word);
                }
            }
        }
        self.run();
        self.follow_tagged(0);
        // Stale and excluded pointers hold what nothing else does.
        self.weakest = Strength::Excluded;
        let first = self.order.len();
        self.run();
        self.follow_tagged(first);
        self.follow_heads(roots);
        self.drop_outdated();
    }

    fn follow_root(&mut self, source: &Source<'_>, from: u32, word: &Word<'_>) {
        let &Word { place, to, around, variable, is_of_library } = word;
        let Some(found) = self.ranges.block_at(to) else { return };
        let types = self.shapes.types;
        let is_program = source.is_static && source.module == types.module;
        let known = types.static_at(place).filter(|_| is_program);
        let known = known.map(|known| (known.of, place - known.address)).or(variable);
        let slot = known.and_then(|(of, offset)| self.shapes.slot_at(of, offset));
        let Some(slot) = slot else {
            let strength = match (source.is_static, is_of_library) {
                (true, _) => Strength::Word,
                (false, true) => Strength::LibraryStackWord,
                (false, false) => Strength::StackWord,
            };
            return self.push(from, found.block, (strength, LabelId::WORD), None);
        };
        let pointee = self.pointee(found.block, found.offset);
        // The static begins before the words around this one, or behind.
        let holder = (Words(around), WORDS_BEFORE.wrapping_mul(8).wrapping_sub(slot.offset));
        let bias = self.bias;
        let layout = Layout::of_target(&self.shapes, slot.target, holder, pointee, |table| {
            types.virtual_tables.get(&table.wrapping_sub(bias)).copied()
        });
        if source.is_static {
            // What a static borrows lives for ever, as a leaked box does: nothing else need own it.
            let strength = match slot.strength {
                Strength::Borrowed => Strength::Raw,
                strength => strength,
            };
            return self.push(from, found.block, (strength, slot.label), layout);
        }
        // The value of a variable may have been moved, and its block may be another since.
        let allocated = self.stack_types.layout(&self.dump.blocks.at(found.block as usize));
        let is_other = allocated.zip(layout).is_some_and(|(a, b)| a.type_of() != b.type_of());
        let (strength, label) = match slot.strength {
            _ if is_other => (Strength::StackWord, LabelId::WORD),
            Strength::Weak => (Strength::Weak, slot.label),
            strength if strength <= Strength::Raw => (Strength::Variable, slot.label),
            _ => (Strength::StackWord, slot.label),
        };
        self.push(from, found.block, (strength, label), layout.filter(|_| !is_other));
    }

    fn pointee(&self, block: u32, into: u64) -> Pointee {
        Pointee { bytes: self.dump.blocks.at(block as usize).usable(), into }
    }

    fn push(
        &mut self,
        from: u32,
        to: u32,
        (strength, label): (Strength, LabelId),
        layout: Option<Layout>,
    ) {
        let generation = self.generations.get(from as usize).copied().unwrap_or(0);
        self.edges.push(Edge { from, to, strength, label, generation });
        // A weak pointer holds the block alone, and only once the value in it is gone.
        if strength == Strength::Weak
            && self.ranges.words_of(to, &mut Vec::new()).first() != Some(&0)
        {
            return;
        }
        let is_new = self.reached_from[to as usize] == NONE;
        // An owner knows the type better than what reached the block first.
        let is_better =
            strength <= Strength::Raw && layout.is_some() && !self.layouts.id(to).is_some();
        if is_new || is_better {
            let layout = self.layouts.number(layout);
            self.queues[strength as usize].push_back(Pending { from, to, layout });
        }
    }

    fn run(&mut self) {
        let count = self.weakest as usize + 1;
        let next = |queues: &mut [VecDeque<Pending>; STRENGTHS]| {
            let mut queues = queues.iter_mut().take(count).enumerate();
            queues.find_map(|(strength, queue)| Some((strength, queue.pop_front()?)))
        };
        while let Some((strength, pending)) = next(&mut self.queues) {
            let at = pending.to as usize;
            if self.reached_from[at] == NONE {
                self.reached_from[at] = pending.from;
                let own = match strength {
                    _ if strength == Strength::LibraryStackWord as usize => Rank::LibraryStackWords,
                    _ if strength >= Strength::Word as usize => Rank::Words,
                    _ => Rank::Typed,
                };
                self.ranks[at] = self.rank(pending.from).max(own);
                self.is_below_stack[at] = strength == Strength::StackWord as usize
                    || strength == Strength::LibraryStackWord as usize
                    || self.is_below_stack.get(pending.from as usize).is_some_and(|below| *below);
                self.order.push(pending.to);
                let layout = match pending.layout {
                    LayoutId::NONE => self.by_stack(pending.to),
                    known => known,
                };
                self.layouts.set(pending.to, layout);
            } else if pending.layout.is_some() && !self.layouts.id(pending.to).is_some() {
                self.layouts.set(pending.to, pending.layout);
                self.generations[at] = self.generations[at].saturating_add(1);
            } else {
                continue;
            }
            self.expand(pending.to);
        }
    }

    /// Frees all but the layouts, once the pointers that hold blocks are chosen.
    pub(super) fn keep_layouts(&mut self) {
        self.reached_from = Vec::new();
        self.ranks = Vec::new();
        self.is_below_stack = Vec::new();
        self.generations = Vec::new();
        self.order = Vec::new();
    }

    /// Drops the pointers of blocks that got a layout only later.
    fn drop_outdated(&mut self) {
        self.queues = Default::default();
        let generations = &self.generations;
        self.edges.retain(|edge| {
            let now = generations.get(edge.from as usize).copied().unwrap_or(0);
            edge.generation == now
        });
        self.edges.shrink_to_fit();
    }

    /// Returns the evidence for the way from a root to a node.
    pub(super) fn rank(&self, node: u32) -> Rank {
        let outside = if node == self.external { Rank::Unrooted } else { Rank::Typed };
        self.ranks.get(node as usize).copied().unwrap_or(outside)
    }

    fn by_stack(&mut self, block: u32) -> LayoutId {
        let of = self.dump.blocks.at(block as usize);
        let layout = self.stack_types.layout(&of);
        self.layouts.number(layout.filter(|layout| layout.fits(&self.shapes, of.usable())))
    }

    /// Pushes the pointers of a block.
    fn expand(&mut self, block: u32) {
        let (ranges, mut buffer) = (self.ranges, Vec::new());
        let words = Words(ranges.words_of(block, &mut buffer));
        // The places of the pointers of the type. A block may have millions, so each is pushed when
        // it is found.
        let mut typed: Vec<u64> = Vec::new();
        if let Some(layout) = self.layouts.get(block) {
            let (parts, types) = (layout.parts(&mut self.shapes), self.shapes.types);
            layout.each_slot((&parts, types), words, &mut |start, slot| {
                let at = start.saturating_add(slot.offset);
                let found = words.number(at, 8).and_then(|word| ranges.block_at(word));
                let Some(found) = found else { return };
                typed.push(at);
                if found.block != block {
                    let layout = self.target(slot, (words, start), found);
                    self.push(block, found.block, (slot.strength, slot.label), layout);
                }
            });
        }
        typed.sort_unstable();
        let is_unlikely = self.is_below_stack[block as usize] || self.is_text(block);
        let word = match is_unlikely {
            _ if self.is_list(block) => Strength::Excluded,
            true => Strength::UnlikelyWord,
            false => Strength::Word,
        };
        let mut unused = None;
        ranges.each_link_in(block, words.0, |link| {
            let at = u64::from(link.at);
            if link.to == block || typed.binary_search(&at).is_ok() {
                return;
            }
            let unused = unused.get_or_insert_with(|| {
                let layout = self.layouts.get(block);
                layout.map(|layout| Unused::of(layout, &self.shapes, words))
            });
            let is_stale = unused.as_ref().is_some_and(|unused| unused.has(at));
            if is_stale && !self.has_all_roots {
                return;
            }
            let strength = if is_stale { word.max(Strength::Stale) } else { word };
            self.push(block, link.to, (strength, LabelId::WORD), None);
        });
    }

    /// Returns the layout of the block that a slot leads to. The holder is the block with the slot,
    /// by its words and the offset of the value in it.
    fn target(&self, slot: &Slot, holder: (Words<'_>, u64), found: BlockAddress) -> Option<Layout> {
        let pointee = self.pointee(found.block, found.offset);
        Layout::of_target(&self.shapes, slot.target, holder, pointee, |table: u64| {
            let address = table.wrapping_sub(self.bias);
            self.shapes.types.virtual_tables.get(&address).copied()
        })
    }

    /// Returns whether a block is a buffer of pointers that do not count as holders.
    fn is_list(&self, block: u32) -> bool {
        let site = self.sites.get(self.dump.blocks.at(block as usize).kind.alloc);
        stack_types::elements(&site.block_type).is_some_and(|of| self.shapes.is_excluded(of))
    }

    /// Returns whether a block has bytes or a text by the stack that allocated it.
    fn is_text(&self, block: u32) -> bool {
        let site = self.sites.get(self.dump.blocks.at(block as usize).kind.alloc);
        stack_types::is_text(&site.block_type)
    }
}

/// Returns the load bias of a module of the dump.
fn bias(dump: &Dump, path: &str) -> u64 {
    let mut modules = dump.extension.iter().flat_map(|ours| &ours.modules);
    let module = modules.find(|module| module.path == path);
    let base = module.and_then(|module| module.base.as_deref());
    base.and_then(|base| u64::from_str_radix(base, 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::bias;
    use crate::read::read_slice;

    #[test]
    fn a_module_has_its_own_load_bias() {
        let text = r#"{"version":5,"invocation":{"dmdEnvVar":null,"mode":"scan"},"blockList":[],
            "memreport":{"version":1,"modules":[{"path":"/bin/shop","base":"5500"},{"path":"/lib/a.so","base":"7f00"}]},
            "traceTable":{},"frameTable":{}}"#;
        let dump = read_slice(text.as_bytes()).unwrap();
        for (path, expected) in [("/bin/shop", 0x5500), ("/lib/a.so", 0x7f00), ("/lib/b.so", 0)] {
            assert_eq!(bias(&dump, path), expected, "{path}");
        }
    }
}
