//! A dump as records: one section for each class of blocks.

use rustc_hash::FxHashMap;

use super::class::Class;
use super::record::{Record, SizeCount};
use super::stacks::{Grouped, Grouping, ListId, StackId, Stacks};
use super::totals::Totals;
use crate::read::{Block, Dump, Mode};

/// The records of one class, in order of first appearance.
#[derive(Debug)]
pub struct Section {
    /// The class of all its blocks.
    pub class: Class,
    /// The records.
    pub records: Vec<Record>,
}

/// A dump, or the difference of two, as records.
#[derive(Debug)]
pub struct Digest {
    /// `$DMD` of each dump: one entry, or two for a difference.
    pub dmd_env_vars: Vec<Option<String>>,
    /// The mode of the dumps; scan counts as live.
    pub mode: Mode,
    /// All blocks.
    pub heap: Totals,
    /// The sections, in the order in which they are shown.
    pub sections: Vec<Section>,
}

impl Digest {
    /// Returns the section of a class, or `None` if dumps of this mode do not have it.
    #[must_use]
    pub fn section(&self, class: Class) -> Option<&Section> {
        self.sections.iter().find(|section| section.class == class)
    }
}

/// Groups the blocks of `dump` by their stacks.
#[must_use]
pub fn digest(dump: &Dump, how: &Grouping, stacks: &mut Stacks) -> Digest {
    digest_of(dump, dump.blocks.iter(), how, stacks)
}

/// Groups these blocks of `dump`, or entries of alike ones, by their stacks.
pub(crate) fn digest_of<'d>(
    dump: &'d Dump,
    blocks: impl Iterator<Item = Block<'d>>,
    how: &Grouping,
    stacks: &mut Stacks,
) -> Digest {
    let grouped = stacks.group(dump, how);
    let (mode, classes): (_, &[Class]) = match dump.invocation.mode {
        Mode::Live | Mode::Scan => (Mode::Live, &[Class::Live]),
        Mode::Cumulative => (Mode::Cumulative, &[Class::Cumulative]),
        Mode::DarkMatter => {
            (Mode::DarkMatter, &[Class::TwiceReported, Class::Unreported, Class::OnceReported])
        }
    };
    let mut builders: Vec<Builder> = classes.iter().map(|_| Builder::default()).collect();
    let mut heap = Totals::default();
    let mut reports = Vec::new();
    for block in blocks {
        heap.add(block.num, block.req, block.slop);
        let alloc = grouped.alloc_of(&block);
        let section = section_of(dump, &block, &grouped, &mut reports);
        builders[section].add(&block, alloc, stacks.list_id(&reports));
    }
    let section =
        |(&class, builder): (&Class, Builder)| Section { class, records: builder.records };
    let sections = classes.iter().zip(builders).map(section).collect();
    Digest { dmd_env_vars: vec![dump.invocation.dmd_env_var.clone()], mode, heap, sections }
}

/// Returns the place of the block's section, and fills `reports` with the stacks that reported it.
fn section_of(
    dump: &Dump,
    block: &Block<'_>,
    grouped: &Grouped,
    reports: &mut Vec<StackId>,
) -> usize {
    reports.clear();
    if dump.invocation.mode != Mode::DarkMatter {
        return 0;
    }
    let Some(traces) = dump.reports(block) else { return 1 };
    reports.extend(traces.iter().map(|trace| grouped.traces[trace.index()]));
    // An empty list of reports counts as twice, as in dmd.py.
    if reports.len() == 1 { 2 } else { 0 }
}

/// The records of a section while blocks are added.
#[derive(Default)]
struct Builder {
    records: Vec<Record>,
    places: FxHashMap<(StackId, ListId), u32>,
    sizes: FxHashMap<(usize, i64), usize>,
}

/// The number of sizes of a record from which they are also in a hash table.
const FEW_SIZES: usize = 16;

impl Builder {
    fn add(&mut self, block: &Block<'_>, alloc: StackId, reports: ListId) {
        let next = u32::try_from(self.records.len()).unwrap_or(u32::MAX);
        let at = *self.places.entry((alloc, reports)).or_insert(next);
        if at == next {
            self.records.push(Record::new(alloc, reports));
        }
        let at = at as usize;
        let record = &mut self.records[at];
        record.totals.add(block.num, block.req, block.slop);
        if let Some(address) = block.addr {
            record.addrs.push(address.get());
        }
        let usable = i64::try_from(block.usable()).unwrap_or(i64::MAX);
        let num = i64::try_from(block.num).unwrap_or(i64::MAX);
        let place = self.place_of_size(at, usable);
        let sizes = &mut self.records[at].sizes.0;
        match place {
            Some(place) => sizes[place].count = sizes[place].count.saturating_add(num),
            None => sizes.push(SizeCount { size: usable, count: num }),
        }
    }

    /// Returns where the record at `at` counts blocks of `usable` bytes, or `None` if it has none
    /// of them yet.
    fn place_of_size(&mut self, at: usize, usable: i64) -> Option<usize> {
        let sizes = &self.records[at].sizes.0;
        if sizes.len() < FEW_SIZES {
            return sizes.iter().position(|of| of.size == usable);
        }
        if sizes.len() == FEW_SIZES {
            self.sizes.extend(sizes.iter().zip(0..).map(|(of, place)| ((at, of.size), place)));
        }
        let next = sizes.len();
        let place = *self.sizes.entry((at, usable)).or_insert(next);
        (place < next).then_some(place)
    }
}
