//! The pointers of a block: those of its type, and other words that may be pointers.

use crate::analysis::scan::links::{BlockAddress, Link};
use crate::ownership::layout::Layout;
use crate::ownership::layout::words::{Room, Words};
use crate::ownership::shape::{LabelId, Slot, Strength};
use crate::retention::graph::nodes::NodeSet;

use super::unused::Unused;
use super::{Claims, Edge, stack_types};

/// A pointer in a block, to another.
struct Pointer<'s> {
    to: BlockAddress,
    strength: Strength,
    label: LabelId,
    /// The slot of the type, and the offset of the value that has it; `None` for a word that only
    /// looks like a pointer.
    slot: Option<(&'s Slot, u64)>,
}

/// The words of a block that are pointers of its type: a bit for each word.
struct TypedWords {
    /// The number of words.
    limit: usize,
    /// Empty until there is one.
    set: Option<NodeSet>,
}

impl TypedWords {
    fn of(words: Words<'_>) -> Self {
        Self { limit: usize::try_from(words.bytes() / 8).unwrap_or(usize::MAX), set: None }
    }

    /// Adds the word at an offset.
    fn insert(&mut self, at: u64) {
        if let Ok(number) = u32::try_from(at / 8) {
            self.set.get_or_insert_with(|| NodeSet::new(self.limit)).insert(number);
        }
    }

    fn contains(&self, at: u64) -> bool {
        let number = u32::try_from(at / 8).unwrap_or(u32::MAX);
        at.is_multiple_of(8) && self.set.as_ref().is_some_and(|set| set.contains(number))
    }
}

impl Claims<'_, '_, '_> {
    /// Pushes the pointers of a block.
    pub(super) fn expand(&mut self, block: u32) {
        let (ranges, mut room) = (self.ranges, Room::default());
        let words = Words::of(ranges, block, &mut room);
        self.each_pointer(block, words, &mut |claims, Pointer { to, strength, slot, .. }| {
            let layout = slot.and_then(|(slot, start)| claims.target(slot, (words, start), to));
            claims.push(block, to.block, strength, layout);
        });
    }

    /// Visits the pointers that a block has by its last layout. A block that was not reached has
    /// none.
    pub(super) fn each_edge_of_block(&mut self, from: u32, visit: &mut dyn FnMut(&Self, Edge)) {
        if !self.paths.is_reached(from) {
            return;
        }
        let (ranges, mut room) = (self.ranges, Room::default());
        let words = Words::of(ranges, from, &mut room);
        if words.bytes() == 0 {
            return;
        }
        self.each_pointer(from, words, &mut |claims, Pointer { to, strength, label, .. }| {
            visit(claims, Edge { from, to: to.block, strength, label });
        });
    }

    /// Visits the pointers in the words of a block.
    fn each_pointer(
        &mut self,
        block: u32,
        words: Words<'_>,
        visit: &mut dyn FnMut(&mut Self, Pointer<'_>),
    ) {
        let ranges = self.ranges;
        // A block may have millions of pointers, so each is visited when it is found.
        let mut typed = TypedWords::of(words);
        if let Some(layout) = self.layouts.get(block) {
            let (parts, types) = (layout.parts(&mut self.shapes), self.shapes.types);
            layout.each_slot((&parts, types), words, &mut |start, slot| {
                let at = start.saturating_add(slot.offset);
                let found = words.number(at, 8).and_then(|word| ranges.block_at(word));
                let Some(to) = found else { return };
                typed.insert(at);
                if to.block != block {
                    let &Slot { strength, label, .. } = slot;
                    visit(self, Pointer { to, strength, label, slot: Some((slot, start)) });
                }
            });
        }
        let is_unlikely = self.paths.is_below_stack(block) || self.is_text(block);
        let word = match is_unlikely {
            _ if self.is_list(block) => Strength::Excluded,
            true => Strength::UnlikelyWord,
            false => Strength::Word,
        };
        let mut unused = None;
        let visit_link = |link: Link| {
            let at = u64::from(link.at);
            if link.to == block || typed.contains(at) {
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
            let to = BlockAddress { block: link.to, offset: u64::from(link.into) };
            visit(self, Pointer { to, strength, label: LabelId::WORD, slot: None });
        };
        match words.all() {
            Some(all) => ranges.each_link_in(block, all, visit_link),
            None => ranges.each_link_of(block, visit_link),
        }
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
