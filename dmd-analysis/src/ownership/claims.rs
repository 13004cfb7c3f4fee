//! Finds the holders of each block: from the roots on, the strongest pointers first.

pub(super) mod path_flags;
mod layouts;
mod pointers;
mod rest;
pub(super) mod stack_types;
mod unused;

use std::collections::VecDeque;

use crate::analysis::AddressPlace;
use crate::analysis::frames::Sites;
use crate::analysis::scan::links::BlockRanges;
use crate::read::{Dump, StaticPlace};
use crate::retention::NONE;
use crate::retention::graph::node_list::NodeList;

use super::layout::words::Words;
use super::layout::{Layout, Pointee};
use super::roots::{Roots, Source, Word};
use super::shape::{LabelId, STRENGTHS, Shapes, Strength};
use layouts::{LayoutId, Layouts};
use path_flags::{PathFlags, Rank};
use stack_types::StackTypes;

/// The words of a static that are known before one that leads to a block.
pub(super) const WORDS_BEFORE: u64 = 3;

/// A pointer from one node to a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) strength: Strength,
    pub(super) label: LabelId,
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
    /// By node: for a block, the node whose pointer reached it first, or [`NONE`].
    pub(super) reached_from: Vec<u32>,
    paths: PathFlags,
    pub(super) layouts: Layouts,
    queues: [VecDeque<Pending>; STRENGTHS],
    /// The weakest pointers that are followed so far.
    weakest: Strength,
    /// The edges that are not found again by looking at the blocks: those from roots, and those of
    /// tagged words, each with whether its holder had got its layout later. In the end sorted by
    /// the holder.
    recorded: Vec<(Edge, bool)>,
    /// The blocks, each after its predecessor on the way from a root.
    pub(super) order: NodeList,
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
            reached_from: vec![NONE; roots.nodes()],
            paths: PathFlags::new(blocks),
            layouts: Layouts::new(blocks),
            queues: Default::default(),
            weakest: Strength::Weak,
            recorded: Vec::new(),
            order: NodeList::default(),
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
                let block = self.ranges.block_at(word.to).map(|found| found.block);
                if block.is_some_and(|block| !self.paths.is_reached(block)) {
                    self.follow_root(source, from, word);
                }
            }
        }
        self.run();
        self.follow_tagged(AddressPlace::default());
        // Stale and excluded pointers hold what nothing else does.
        self.weakest = Strength::Excluded;
        let first = self.order.end();
        self.run();
        self.follow_tagged(first);
        self.follow_heads(roots);
        self.queues = Default::default();
        let paths = &self.paths;
        self.recorded.retain(|(edge, renewed)| *renewed == paths.is_renewed(edge.from));
        self.recorded.sort_unstable_by_key(|(edge, _)| edge.from);
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
            return self.record(from, found.block, (strength, LabelId::WORD), None);
        };
        let pointee = self.pointee(found.block, found.offset);
        // The static begins before the words around this one, or behind.
        let holder = (Words::new(around), WORDS_BEFORE.wrapping_mul(8).wrapping_sub(slot.offset));
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
            return self.record(from, found.block, (strength, slot.label), layout);
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
        self.record(from, found.block, (strength, label), layout.filter(|_| !is_other));
    }

    fn pointee(&self, block: u32, into: u64) -> Pointee {
        Pointee { bytes: self.dump.blocks.at(block as usize).usable(), into }
    }

    /// Pushes a pointer that is not found again by looking at the blocks.
    fn record(
        &mut self,
        from: u32,
        to: u32,
        (strength, label): (Strength, LabelId),
        layout: Option<Layout>,
    ) {
        let edge = Edge { from, to, strength, label };
        self.recorded.push((edge, self.paths.is_renewed(from)));
        self.push(from, to, strength, layout);
    }

    /// Adds a pointer to those that are followed later, if it may tell more of its block.
    fn push(&mut self, from: u32, to: u32, strength: Strength, layout: Option<Layout>) {
        // A weak pointer holds the block alone, and only once the value in it is gone.
        if strength == Strength::Weak && self.ranges.first_words(to, 1, &mut Vec::new()) != [0] {
            return;
        }
        let is_new = !self.paths.is_reached(to);
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
            let Pending { from, to, .. } = pending;
            if !self.paths.is_reached(to) {
                self.reached_from[to as usize] = from;
                let own = match strength {
                    _ if strength == Strength::LibraryStackWord as usize => Rank::LibraryStackWords,
                    _ if strength >= Strength::Word as usize => Rank::Words,
                    _ => Rank::Typed,
                };
                let is_below_stack = strength == Strength::StackWord as usize
                    || strength == Strength::LibraryStackWord as usize
                    || self.paths.is_below_stack(from);
                self.paths.reach(to, self.rank(from).max(own), is_below_stack);
                self.order.push(to);
                let layout = match pending.layout {
                    LayoutId::NONE => self.by_stack(to),
                    known => known,
                };
                self.layouts.set(to, layout);
            } else if pending.layout.is_some() && !self.layouts.id(to).is_some() {
                self.layouts.set(to, pending.layout);
                self.paths.renew(to);
            } else {
                continue;
            }
            self.expand(to);
        }
    }

    /// Visits the final pointers to blocks: those that blocks have by their last layouts, and those
    /// of roots and tagged words.
    pub(super) fn each_edge(&mut self, visit: &mut dyn FnMut(&Self, Edge)) {
        for block in (0..).take(self.dump.blocks.len()) {
            self.each_edge_of_block(block, visit);
        }
        self.recorded.iter().for_each(|(edge, _)| visit(self, *edge));
    }

    /// Visits the final pointers of one node.
    pub(super) fn each_edge_of(&mut self, from: u32, visit: &mut dyn FnMut(&Self, Edge)) {
        self.each_edge_of_block(from, visit);
        let first = self.recorded.partition_point(|(edge, _)| edge.from < from);
        let recorded = self.recorded[first..].iter().take_while(|(edge, _)| edge.from == from);
        recorded.for_each(|(edge, _)| visit(self, *edge));
    }

    /// Frees all but the layouts, once the pointers that hold blocks are chosen.
    pub(super) fn keep_layouts(&mut self) {
        self.paths = PathFlags::new(0);
        self.recorded = Vec::new();
        self.order = NodeList::default();
    }

    /// Returns the evidence for the way from a root to a node.
    pub(super) fn rank(&self, node: u32) -> Rank {
        let outside = if node == self.external { Rank::Unrooted } else { Rank::Typed };
        self.paths.rank(node).unwrap_or(outside)
    }

    fn by_stack(&mut self, block: u32) -> LayoutId {
        let of = self.dump.blocks.at(block as usize);
        let layout = self.stack_types.layout(&of);
        self.layouts.number(layout.filter(|layout| layout.fits(&self.shapes, of.usable())))
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
