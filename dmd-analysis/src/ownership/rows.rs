//! Rows of the tree: alike blocks of one holder share a row.

use rustc_hash::FxHashMap;

use crate::analysis::frames::{BlockType, Sites};
use crate::analysis::scan::links::BlockRanges;
use crate::read::{Block, Dump};
use crate::retention::graph::dominators::Visit;

use super::claims::Claims;
use super::contents::Contents;
use super::holders::Holders;
use super::layout::words::{Room, Words};
use super::layout::{Layout, Load};
use super::roots::Roots;
use super::several::Several;
use super::shape::{LabelId, Shapes, shared_value, short};
use super::tree::RowKind;

/// A row before the tree is built.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) kind: RowKind,
    pub(super) is_uncertain: bool,
    pub(super) parent: Option<usize>,
    pub(super) sums: Sums,
}

/// The sums over the blocks of a row, without those of rows below it. Bytes are usable bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) blocks: u64,
    pub(super) bytes: u64,
    /// The bytes of blocks whose type is known.
    pub(super) typed: u64,
    /// Elements in use, and places for elements, of buffers and tables.
    pub(super) load: Load,
    /// The bytes of places without an element.
    pub(super) spare: u64,
    /// The bytes of blocks whose contents were compared.
    pub(super) compared: u64,
    pub(super) copies: u64,
    pub(super) copied_blocks: u64,
}

/// The identity of a row below its parent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    name: u32,
    kind: RowKind,
    is_uncertain: bool,
}

/// All rows, and how to find them.
pub(super) struct Rows<'a, 'd, 't> {
    dump: &'d Dump,
    ranges: &'a BlockRanges<'d>,
    sites: &'a Sites,
    claims: Claims<'a, 'd, 't>,
    holders: Holders,
    several: Several,
    /// The blocks that are in the sums.
    is_counted: &'a dyn Fn(&Block<'_>) -> bool,
    heads: Vec<u32>,
    pub(super) list: Vec<Draft>,
    known: FxHashMap<(Option<usize>, Key), usize>,
    keys: Vec<Key>,
    names: FxHashMap<String, u32>,
    contents: Contents,
}

impl<'a, 'd, 't> Rows<'a, 'd, 't> {
    /// Makes the rows of a heap.
    pub(super) fn new(
        (dump, ranges, sites): (&'d Dump, &'a BlockRanges<'d>, &'a Sites),
        mut claims: Claims<'a, 'd, 't>,
        roots: &Roots<'_>,
        is_counted: &'a dyn Fn(&Block<'_>) -> bool,
    ) -> Self {
        let holders = Holders::new(ranges, &mut claims, roots);
        let several = Several::new(&holders, roots);
        let mut heads = std::mem::take(&mut claims.heads);
        heads.sort_unstable();
        let mut rows = Self {
            dump,
            ranges,
            sites,
            claims,
            holders,
            several,
            is_counted,
            heads,
            list: Vec::new(),
            known: FxHashMap::default(),
            keys: Vec::new(),
            names: FxHashMap::default(),
            contents: Contents::default(),
        };
        rows.fill(roots);
        rows
    }

    fn fill(&mut self, roots: &Roots<'_>) {
        // The rows of the nodes above, each with the number of such nodes one below another.
        let mut above: Vec<(Option<usize>, u32)> = Vec::new();
        let root = self.holders.root;
        let mut next = Some(Visit::Enter(root));
        while let Some(visit) = next {
            match visit {
                Visit::Enter(node) => {
                    let parent = above.last().and_then(|(row, _)| *row);
                    let row = (node != root).then(|| self.node(node, parent, roots));
                    match above.last_mut() {
                        Some((last, count)) if *last == row => *count += 1,
                        _ => above.push((row, 1)),
                    }
                }
                Visit::Leave(_) => match above.last_mut() {
                    Some((_, count)) if *count > 1 => *count -= 1,
                    _ => _ = above.pop(),
                },
            }
            next = self.holders.dominators.after(visit, root);
        }
    }

    /// Adds a node to its row, and returns the row.
    fn node(&mut self, node: u32, parent: Option<usize>, roots: &Roots<'_>) -> usize {
        match roots.sources.get((node as usize).wrapping_sub(self.dump.blocks.len())) {
            Some(source) => {
                let kind = if source.is_static { RowKind::Static } else { RowKind::Memory };
                self.row(parent, &source.name, kind, false)
            }
            None => self.block(node, parent, roots),
        }
    }

    /// Adds a block to its row, and returns the row.
    fn block(&mut self, block: u32, parent: Option<usize>, roots: &Roots<'_>) -> usize {
        let row = match parent {
            None => self.top_row(block, roots),
            Some(parent) => self.row_below(block, parent, self.holders.label(block)),
        };
        self.add(row, block);
        row
    }

    /// Returns the row of a block that no single root holds.
    fn top_row(&mut self, block: u32, roots: &Roots<'_>) -> usize {
        let is_head = self.heads.binary_search(&block).is_ok();
        let has_all = self.dump.extension.as_ref().is_some_and(|ours| ours.has_all_roots);
        let (name, kind) = match (is_head, has_all) {
            (false, _) => ("held by several, and by none alone", RowKind::Several),
            (true, true) => ("leaked: nothing refers to it", RowKind::Leaked),
            (true, false) => ("held from a stack or a library, or leaked", RowKind::Unknown),
        };
        let mut top = self.row(None, name, kind, false);
        if kind == RowKind::Several {
            let names = self.several.names(block, roots);
            top = self.row(Some(top), &names, kind, false);
        }
        let name = self.type_text(block);
        self.row(Some(top), &name, RowKind::Blocks, false)
    }

    fn row_below(&mut self, block: u32, parent: usize, label: Option<LabelId>) -> usize {
        let (name, kind, is_uncertain) = match label {
            // All nodes of a map are one row.
            Some(LabelId::NODE) => return parent,
            Some(LabelId::WORD) => (self.type_text(block), RowKind::Blocks, true),
            None => (self.type_text(block), RowKind::Shared, self.holders.is_by_words(block)),
            Some(label) => {
                let mut name = self.claims.shapes.label_text(label).to_owned();
                if let Some(concrete) = self.concrete(block, &name) {
                    name = format!("{name} = {concrete}");
                }
                (name, RowKind::Blocks, false)
            }
        };
        self.row(Some(parent), &name, kind, is_uncertain)
    }

    /// Returns the row with this name below a parent. A row that is above already takes the blocks
    /// too, so that a list is one row.
    fn row(
        &mut self,
        parent: Option<usize>,
        name: &str,
        kind: RowKind,
        is_uncertain: bool,
    ) -> usize {
        let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let number = match self.names.get(name) {
            Some(&known) => known,
            None => *self.names.entry(name.to_owned()).or_insert(next),
        };
        let key = Key { name: number, kind, is_uncertain };
        let mut above = parent;
        while let Some(row) = above {
            if self.keys[row] == key {
                return row;
            }
            above = self.list[row].parent;
        }
        let list = &mut self.list;
        let keys = &mut self.keys;
        *self.known.entry((parent, key.clone())).or_insert_with(|| {
            let name = name.to_owned();
            list.push(Draft { name, kind, is_uncertain, parent, sums: Sums::default() });
            keys.push(key);
            list.len() - 1
        })
    }

    fn add(&mut self, row: usize, number: u32) {
        let block = self.dump.blocks.at(number as usize);
        if !(self.is_counted)(&block) {
            return;
        }
        let bytes = block.usable().saturating_mul(block.num);
        let layout = self.claims.layouts.get(number);
        let is_known = matches!(self.sites.get(block.kind.alloc).block_type, BlockType::Known(_));
        let shapes = &mut self.claims.shapes;
        let sums = &mut self.list[row].sums;
        sums.blocks = sums.blocks.saturating_add(block.num);
        sums.bytes = sums.bytes.saturating_add(bytes);
        if layout.is_some() || is_known {
            sums.typed = sums.typed.saturating_add(bytes);
        }
        let Some(layout) = layout else { return };
        let mut room = Room::default();
        let words = Words::of(self.ranges, number, &mut room);
        let size = shapes.types.get(layout.type_of()).size;
        if let Some(Load { used, places }) = layout.load(size, block.req, words) {
            sums.load.used = sums.load.used.saturating_add(used);
            sums.load.places = sums.load.places.saturating_add(places);
            sums.spare = sums.spare.saturating_add((places - used).saturating_mul(size));
        }
        if let Some(is_copy) = self.contents.is_copy(row, layout, words, shapes) {
            sums.compared = sums.compared.saturating_add(bytes);
            if is_copy {
                sums.copies = sums.copies.saturating_add(bytes);
                sums.copied_blocks += 1;
            }
        }
    }

    /// Returns the type of a block in words: by its stack, or else by its layout.
    fn type_text(&self, block: u32) -> String {
        let site = self.sites.get(self.dump.blocks.at(block as usize).kind.alloc);
        match (&site.block_type, self.claims.layouts.get(block)) {
            (BlockType::Known(name), _) => short(name),
            (_, Some(layout)) => layout_text(&self.claims.shapes, layout),
            (other, None) => other.describe(),
        }
    }

    /// Returns the type behind a `dyn`.
    fn concrete(&self, block: u32, name: &str) -> Option<String> {
        if !name.contains("dyn ") {
            return None;
        }
        let Layout::Value { of, .. } = self.claims.layouts.get(block)? else { return None };
        let name = short(self.claims.shapes.types.name(of));
        Some(shared_value(&name).map(str::to_owned).unwrap_or(name))
    }
}

fn layout_text(shapes: &Shapes<'_>, layout: Layout) -> String {
    let name = short(shapes.types.name(layout.type_of()));
    match layout {
        Layout::Value { .. } => match shared_value(&name) {
            Some(of) if name.starts_with("Rc") => format!("Rc<{of}>"),
            Some(of) => format!("Arc<{of}>"),
            None => name,
        },
        Layout::Elements { .. } => format!("[{name}]"),
        Layout::Table { .. } => format!("HashMap table of {name}"),
    }
}
