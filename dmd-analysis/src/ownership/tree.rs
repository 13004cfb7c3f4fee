//! The finished tree of owners.

mod difference;

use std::cmp::Reverse;

use crate::analysis::frames::{Sites, Style};
use crate::analysis::scan::links::BlockRanges;
use crate::analysis::{ClampError, ExplainOptions};
use crate::read::{Block, Dump, Sum};
use crate::symbols::Types;

use super::claims::Claims;
use super::roots::Roots;
use super::rows::{Draft, Rows, Sums};
use super::shape::Shapes;

pub use difference::{OwnerChange, owner_difference};

/// Options of the tree.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OwnerTreeOptions {
    /// The names of blocks without a type.
    pub explain: ExplainOptions,
    /// The names of pointer types that hold nothing: `NonNull<GcBox<…>>`, where `…` or `*` stands
    /// for any text.
    pub not_through: Vec<String>,
    /// Count only blocks that no reporter reported. Rows without any are left out.
    pub unreported_only: bool,
}

/// The kind of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RowKind {
    /// A static.
    Static,
    /// Other memory outside the heap: a thread, a function or a variable of its stack.
    Memory,
    /// Blocks that several roots hold, and none alone; below it, a row with the names of the roots
    /// for each combination.
    Several,
    /// Blocks that nothing in the dump refers to, in a dump without all roots.
    Unknown,
    /// Leaked blocks: nothing refers to them.
    Leaked,
    /// Blocks that the row above holds through one field.
    Blocks,
    /// Blocks that several blocks of the row above hold, and none alone.
    Shared,
}

/// A row of the tree. Sums are over the row and all rows below it, except the `own` ones. All bytes
/// are usable bytes, with slop.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OwnerRow {
    /// The name of a root, or the field and its type: `terms: HashMap<Arc<str>, u32>`.
    pub name: String,
    /// The kind.
    pub kind: RowKind,
    /// True if only a word that looks like a pointer leads to the blocks.
    pub is_uncertain: bool,
    /// The bytes of the row and of all rows below it.
    pub bytes: u64,
    /// The bytes of the row's own blocks.
    pub own: u64,
    /// The number of the row's own blocks.
    pub blocks: u64,
    /// The bytes of the row's own blocks whose type is known.
    pub typed: u64,
    /// Of the row's own buffers and tables: the elements in use.
    pub used: u64,
    /// Of the row's own buffers and tables: the places for elements.
    pub places: u64,
    /// The bytes of the row's own places without an element.
    pub spare: u64,
    /// The bytes of the row's own blocks whose contents were compared.
    pub compared: u64,
    /// The bytes of the row's own blocks that are copies of another in the row.
    pub copies: u64,
    /// The number of those blocks.
    pub copied_blocks: u64,
    /// The rows below it, the largest first.
    pub children: Vec<OwnerRow>,
}

/// The typed tree of a heap.
///
/// # Examples
///
/// ```
/// use memreport_analysis::ownership::{OwnerTree, OwnerTreeOptions};
/// use memreport_analysis::symbols::Symboliser;
///
/// // The block at 0x100 points at the one at 0x200.
/// let dump = memreport_analysis::read::read_slice(
///     br##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "scan"},
///          "blockList": [{"req": 16, "addr": "100", "contents": ["200", "0"]},
///                        {"req": 1000, "addr": "200"}],
///          "traceTable": {}, "frameTable": {}}"##,
/// )?;
/// let types = Symboliser::default().types(&dump);
/// let tree = OwnerTree::new(&dump, &types, &OwnerTreeOptions::default())?;
/// assert_eq!(tree.bytes, 1016);
/// assert_eq!(tree.rows[0].name, "held from a stack or a library, or leaked");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OwnerTree {
    /// The roots, the largest first.
    pub rows: Vec<OwnerRow>,
    /// The bytes of all blocks: the sum of the rows.
    pub bytes: u64,
    /// The number of all blocks.
    pub blocks: u64,
    /// The bytes below a static or other named memory.
    pub named: u64,
    /// The bytes below a static, to which typed fields lead all the way.
    pub certain: u64,
    /// The bytes of blocks whose type is known.
    pub typed: u64,
    /// The bytes that several roots hold, and none alone.
    pub several: u64,
    /// The blocks that are not in the dump: from before tracking began or while it was off.
    pub untracked: Sum,
    /// True if the program's types were found.
    pub has_types: bool,
}

impl OwnerTree {
    /// Builds the tree of a scan.
    ///
    /// # Errors
    ///
    /// If the dump is not a scan, or if it is damaged.
    pub fn new(dump: &Dump, types: &Types, options: &OwnerTreeOptions) -> Result<Self, ClampError> {
        let ranges = BlockRanges::new(dump)?;
        let style = Style { root: options.explain.root.as_deref(), width: 0 };
        let sites = Sites::new(dump, options.explain.max_frames, &style);
        let roots = Roots::new(dump, types);
        let shapes = Shapes::new(types, &options.not_through);
        let mut claims = Claims::new(dump, &ranges, &sites, shapes, &roots);
        claims.follow(&roots);
        let counted = options.unreported_only.then_some(dump);
        let is_counted =
            |block: &Block<'_>| counted.is_none_or(|dump| dump.reports(block).is_none());
        let rows = Rows::new((dump, &ranges, &sites), claims, &roots, &is_counted);
        let mut rows = nest(rows.list);
        ranges.check_words()?;
        if options.unreported_only {
            drop_empty(&mut rows);
        }
        let untracked = dump.extension.as_ref().map_or(Sum::default(), |ours| ours.untracked);
        let has_types = !types.is_empty();
        let sum = |of: &dyn Fn(&OwnerRow) -> u64| rows.iter().map(of).fold(0, u64::saturating_add);
        let is_named = |row: &OwnerRow| matches!(row.kind, RowKind::Static | RowKind::Memory);
        Ok(Self {
            bytes: sum(&|row| row.bytes),
            blocks: sum(&|row| row.sum(|row| row.blocks)),
            named: sum(&|row| if is_named(row) { row.bytes } else { 0 }),
            certain: sum(&|row| if row.kind == RowKind::Static { row.certain() } else { 0 }),
            typed: sum(&|row| row.sum(|row| row.typed)),
            several: sum(&|row| if row.kind == RowKind::Several { row.bytes } else { 0 }),
            untracked,
            has_types,
            rows,
        })
    }
}

impl OwnerRow {
    /// Returns the sum of a figure over the row and all rows below it.
    pub fn sum(&self, of: impl Fn(&OwnerRow) -> u64 + Copy) -> u64 {
        let below = self.children.iter().map(|child| child.sum(of));
        below.fold(of(self), u64::saturating_add)
    }

    fn certain(&self) -> u64 {
        let below = self.children.iter().filter(|child| !child.is_uncertain);
        below.map(Self::certain).fold(self.own, u64::saturating_add)
    }
}

/// Nests rows, each of which comes after its parent.
fn nest(drafts: Vec<Draft>) -> Vec<OwnerRow> {
    let parents: Vec<Option<usize>> = drafts.iter().map(|draft| draft.parent).collect();
    let mut rows: Vec<Option<OwnerRow>> =
        drafts.into_iter().map(|draft| Some(row(draft))).collect();
    let mut top = Vec::new();
    for (at, parent) in parents.into_iter().enumerate().rev() {
        let Some(mut row) = rows[at].take() else { continue };
        sort(&mut row.children);
        match parent {
            None => top.push(row),
            Some(parent) => {
                if let Some(parent) = &mut rows[parent] {
                    parent.bytes = parent.bytes.saturating_add(row.bytes);
                    parent.children.push(row);
                }
            }
        }
    }
    sort(&mut top);
    top
}

/// Drops rows in which no block is counted.
fn drop_empty(rows: &mut Vec<OwnerRow>) {
    rows.iter_mut().for_each(|row| drop_empty(&mut row.children));
    rows.retain(|row| row.blocks > 0 || !row.children.is_empty());
}

fn sort(rows: &mut [OwnerRow]) {
    fn key(row: &OwnerRow) -> (Reverse<u64>, &str, u8, bool) {
        (Reverse(row.bytes), &row.name, row.kind as u8, row.is_uncertain)
    }
    rows.sort_by(|a, b| key(a).cmp(&key(b)));
}

fn row(draft: Draft) -> OwnerRow {
    let Draft { name, kind, is_uncertain, parent: _, sums } = draft;
    let Sums { blocks, bytes, typed, load, spare, compared, copies, copied_blocks } = sums;
    OwnerRow {
        name,
        kind,
        is_uncertain,
        bytes,
        own: bytes,
        blocks,
        typed,
        used: load.used,
        places: load.places,
        spare,
        compared,
        copies,
        copied_blocks,
        children: Vec::new(),
    }
}
