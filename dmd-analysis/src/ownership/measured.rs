//! The blocks that derived reporters of statics would measure.
//!
//! From a static on, typed fields are followed as `#[derive(MallocSizeOf)]` follows them: through
//! owners, and through types that can be measured. So it is known before a derive is written which
//! blocks it would report.

mod needed;
mod rules;
mod variables;

pub use needed::{NeededTypes, needed_types};
pub use rules::MeasureRules;
pub(super) use rules::{FieldName, Measured};

use rustc_hash::FxHashMap;

use crate::analysis::frames::{Sites, Style};
use crate::analysis::scan::links::BlockRanges;
use crate::analysis::{ClampError, ExplainOptions};
use crate::read::{Dump, Sum};
use crate::symbols::Types;

use super::claims::WORDS_BEFORE;
use super::claims::stack_types::StackTypes;
use super::layout::words::{Room, Words};
use super::layout::{Layout, Pointee};
use super::roots::{Roots, Source, Word};
use super::shape::{LabelId, Shapes, Slot, Strength};

/// The kind of a root that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MeasuredKind {
    /// A static.
    Static,
    /// A variable of a function, with a counted block.
    Variable,
}

/// The roots to measure.
#[expect(missing_debug_implementations, reason = "functions have no text")]
pub struct RootChoice<'c> {
    /// Returns whether the static with this path is measured.
    pub statics: &'c dyn Fn(&str) -> bool,
    /// Returns the name of the variable that keeps the counted block which a line of a file
    /// allocates, if it is measured.
    pub variables: &'c dyn Fn(&str, u32) -> Option<String>,
}

/// A root, and the blocks that a derived reporter of it would measure.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MeasuredRoot {
    /// The path of the static, `shop::STOCK`, or the name of the variable.
    pub name: String,
    /// The kind.
    pub kind: MeasuredKind,
    /// The name of its type.
    pub type_name: String,
    /// The line that declares it, from 1; `None` if debug information lacks it.
    pub line: Option<u32>,
    /// The unreported blocks that it would report, without those of roots before it.
    pub unreported: Sum,
    /// The blocks that it would report, and that another reporter reports already.
    pub again: Sum,
    /// The unreported blocks by the program's own type that leads to them: each block is counted
    /// for each type on the way to it.
    pub types: Vec<ShareOf>,
    /// The same by field: `shop::Stock.items`.
    pub fields: Vec<ShareOf>,
}

/// The share of a type or a field.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShareOf {
    /// The path of the type, or the field behind it.
    pub name: String,
    /// The blocks below it.
    pub blocks: Sum,
}

/// Finds the blocks that reporters of statics and variables would measure. Roots with most bytes
/// come first. What a static leads to is not of a variable.
///
/// # Errors
///
/// If the dump is not a scan, or if it is damaged.
pub fn measure(
    dump: &Dump,
    types: &Types,
    rules: &MeasureRules,
    choice: &RootChoice<'_>,
) -> Result<Vec<MeasuredRoot>, ClampError> {
    let ranges = BlockRanges::new(dump)?;
    let sites = Sites::new(dump, ExplainOptions::default().max_frames, &Style::default());
    let roots = Roots::new(dump, types);
    let mut walk = Walk {
        dump,
        ranges: &ranges,
        stack_types: StackTypes::new(&sites, types),
        shapes: Shapes::measured(types, rules),
        is_visited: vec![false; dump.blocks.len()],
        ways: Ways::default(),
        pending: Vec::new(),
    };
    let mut measured = Vec::new();
    for source in &roots.sources {
        if source.is_static && source.module == types.module && (choice.statics)(&source.name) {
            measured.extend(walk.root(source));
        }
    }
    for variable in variables::find(&ranges, &sites, choice.variables) {
        measured.extend(walk.variable(variable));
    }
    ranges.check_words()?;
    measured.sort_by(|a, b| (b.unreported.bytes, &a.name).cmp(&(a.unreported.bytes, &b.name)));
    Ok(measured)
}

impl MeasuredRoot {
    fn new(name: String, kind: MeasuredKind, type_name: String, line: Option<u32>) -> Self {
        let (unreported, again) = Default::default();
        let (types, fields) = Default::default();
        Self { name, kind, type_name, line, unreported, again, types, fields }
    }
}

/// The walk over the blocks of all roots.
struct Walk<'a, 't> {
    dump: &'a Dump,
    ranges: &'a BlockRanges<'a>,
    stack_types: StackTypes<'a>,
    shapes: Shapes<'t>,
    is_visited: Vec<bool>,
    ways: Ways,
    pending: Vec<Pending>,
}

/// A block that is visited later.
struct Pending {
    block: u32,
    layout: Option<Layout>,
    way: u32,
}

impl Walk<'_, '_> {
    fn root(&mut self, source: &Source<'_>) -> Option<MeasuredRoot> {
        let first = source.words.first()?;
        let known = self.shapes.types.static_at(first.place)?;
        let line = Some(known.line).filter(|line| *line > 0);
        let type_name = self.shapes.types.name(known.of).to_owned();
        for word in &source.words {
            self.follow_root(word);
        }
        let name = source.name.clone();
        Some(self.finish(MeasuredRoot::new(name, MeasuredKind::Static, type_name, line)))
    }

    fn variable(&mut self, of: variables::Variable) -> Option<MeasuredRoot> {
        let layout = self.stack_types.layout(&self.dump.blocks.at(of.block as usize))?;
        let type_name = self.shapes.types.name(layout.type_of()).to_owned();
        self.pending.push(Pending { block: of.block, layout: Some(layout), way: Ways::NONE });
        let root = MeasuredRoot::new(of.name, MeasuredKind::Variable, type_name, None);
        Some(self.finish(root))
    }

    /// Visits all pending blocks, and adds them to a root.
    fn finish(&mut self, mut root: MeasuredRoot) -> MeasuredRoot {
        let mut by_way: FxHashMap<u32, Sum> = FxHashMap::default();
        while let Some(Pending { block, layout, way }) = self.pending.pop() {
            if std::mem::replace(&mut self.is_visited[block as usize], true) {
                continue;
            }
            let of = self.dump.blocks.at(block as usize);
            let sum = Sum { blocks: of.num, bytes: of.usable().saturating_mul(of.num) };
            if self.dump.reports(&of).is_some() {
                // What it holds is reported by the other one as well.
                add(&mut root.again, sum);
                continue;
            }
            add(&mut root.unreported, sum);
            add(by_way.entry(way).or_default(), sum);
            let by_stack = || self.stack_types.layout(&of);
            let fits = |layout: &Layout| layout.fits(&self.shapes, of.usable());
            if let Some(layout) = layout.or_else(by_stack).filter(fits) {
                self.expand(block, layout, way);
            }
        }
        (root.types, root.fields) = self.ways.shares(&by_way);
        root
    }

    fn follow_root(&mut self, word: &Word<'_>) {
        let &Word { place, to, around, .. } = word;
        let Some(found) = self.ranges.block_at(to) else { return };
        let Some(known) = self.shapes.types.static_at(place).cloned() else { return };
        let Some(slot) = self.shapes.slot_at(known.of, place - known.address) else { return };
        let pointee = self.pointee(found.block, found.offset);
        let holder = (Words::new(around), WORDS_BEFORE.wrapping_mul(8).wrapping_sub(slot.offset));
        self.push(&slot, holder, (found.block, pointee), Ways::NONE);
    }

    fn pointee(&self, block: u32, into: u64) -> Pointee {
        Pointee { bytes: self.dump.blocks.at(block as usize).usable(), into }
    }

    fn push(
        &mut self,
        slot: &Slot,
        holder: (Words<'_>, u64),
        (block, pointee): (u32, Pointee),
        way: u32,
    ) {
        if slot.strength > Strength::Shared || self.is_visited[block as usize] {
            return;
        }
        let layout = Layout::of_target(&self.shapes, slot.target, holder, pointee, |_| None);
        let way = self.ways.extend(way, slot.label, &self.shapes);
        self.pending.push(Pending { block, layout, way });
    }

    fn expand(&mut self, block: u32, layout: Layout, way: u32) {
        let (ranges, mut room) = (self.ranges, Room::default());
        let words = Words::of(ranges, block, &mut room);
        let (parts, types) = (layout.parts(&mut self.shapes), self.shapes.types);
        layout.each_slot((&parts, types), words, &mut |start, slot| {
            let at = start.saturating_add(slot.offset);
            let found = words.number(at, 8).and_then(|word| ranges.block_at(word));
            if let Some(found) = found.filter(|found| found.block != block) {
                let pointee = self.pointee(found.block, found.offset);
                self.push(slot, (words, start), (found.block, pointee), way);
            }
        });
    }
}

fn add(sum: &mut Sum, more: Sum) {
    sum.blocks = sum.blocks.saturating_add(more.blocks);
    sum.bytes = sum.bytes.saturating_add(more.bytes);
}

/// The ways from a root: each the set of the fields on it.
struct Ways {
    fields: Vec<String>,
    numbers: FxHashMap<String, u32>,
    /// By number of a way: its fields, sorted.
    sets: Vec<Vec<u32>>,
    by_set: FxHashMap<Vec<u32>, u32>,
    extended: FxHashMap<(u32, LabelId), u32>,
}

impl Default for Ways {
    fn default() -> Self {
        Self {
            fields: Vec::new(),
            numbers: FxHashMap::default(),
            sets: vec![Vec::new()],
            by_set: FxHashMap::from_iter([(Vec::new(), Self::NONE)]),
            extended: FxHashMap::default(),
        }
    }
}

impl Ways {
    /// The way of a static itself.
    const NONE: u32 = 0;

    /// Returns the way that goes on through the fields of a label.
    fn extend(&mut self, way: u32, label: LabelId, shapes: &Shapes<'_>) -> u32 {
        if label == LabelId::NODE || label == LabelId::WORD {
            return way;
        }
        if let Some(&known) = self.extended.get(&(way, label)) {
            return known;
        }
        let mut set = self.sets[way as usize].clone();
        for field in shapes.label_text(label).lines() {
            let next = u32::try_from(self.fields.len()).unwrap_or(u32::MAX);
            let number = *self.numbers.entry(field.to_owned()).or_insert_with(|| {
                self.fields.push(field.to_owned());
                next
            });
            if let Err(at) = set.binary_search(&number) {
                set.insert(at, number);
            }
        }
        let next = u32::try_from(self.sets.len()).unwrap_or(u32::MAX);
        let number = *self.by_set.entry(set).or_insert_with_key(|set| {
            self.sets.push(set.clone());
            next
        });
        self.extended.insert((way, label), number);
        number
    }

    /// Returns the shares of types and of fields.
    fn shares(&self, by_way: &FxHashMap<u32, Sum>) -> (Vec<ShareOf>, Vec<ShareOf>) {
        let (mut types, mut fields) = (FxHashMap::default(), FxHashMap::default());
        for (&way, &sum) in by_way {
            let names = self.sets[way as usize].iter().map(|&field| &*self.fields[field as usize]);
            let mut owners: Vec<&str> = names.clone().map(type_of).collect();
            owners.sort_unstable();
            owners.dedup();
            owners.into_iter().for_each(|name| add(types.entry(name).or_default(), sum));
            names.for_each(|name| add(fields.entry(name).or_default(), sum));
        }
        (sorted(types), sorted(fields))
    }
}

/// Returns the type of a field's name.
fn type_of(field: &str) -> &str {
    field.rsplit_once('.').map_or(field, |(of, _)| of)
}

fn sorted(shares: FxHashMap<&str, Sum>) -> Vec<ShareOf> {
    let shares = shares.into_iter();
    let mut shares: Vec<ShareOf> =
        shares.map(|(name, blocks)| ShareOf { name: name.to_owned(), blocks }).collect();
    shares.sort_by(|a, b| (b.blocks.bytes, &a.name).cmp(&(a.blocks.bytes, &b.name)));
    shares
}
