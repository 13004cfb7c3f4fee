//! A dump as records: one section for each class of blocks.

use rustc_hash::FxHashMap;

use super::stacks::Grouped;
use super::{Grouping, Record, StackId, Stacks, Totals};
use crate::dump::read::{Block, Dump, Mode};

/// A class of blocks, each with a section of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Class {
    /// All blocks of a live or scan dump.
    Live,
    /// All blocks of a cumulative dump.
    Cumulative,
    /// Reported twice or more often.
    TwiceReported,
    /// Not reported: dark matter.
    Unreported,
    /// Reported once, as it should be.
    OnceReported,
}

impl Class {
    /// Its name within a line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Cumulative => "cumulative",
            Self::TwiceReported => "twice-reported",
            Self::Unreported => "unreported",
            Self::OnceReported => "once-reported",
        }
    }

    /// Its name at the start of a line.
    #[must_use]
    pub fn heading(self) -> &'static str {
        match self {
            Self::Live => "Live",
            Self::Cumulative => "Cumulative",
            Self::TwiceReported => "Twice-reported",
            Self::Unreported => "Unreported",
            Self::OnceReported => "Once-reported",
        }
    }
}

/// The records of one class, in order of first appearance.
#[derive(Debug)]
pub struct Section {
    /// What they have in common.
    pub class: Class,
    /// The records.
    pub records: Vec<Record>,
}

/// A dump, or the difference of two, as records.
#[derive(Debug)]
pub struct Digest {
    /// `$DMD` of each dump: one entry, or two for a difference.
    pub dmd_env_vars: Vec<Option<String>>,
    /// What was recorded; scan counts as live.
    pub mode: Mode,
    /// All blocks.
    pub heap: Totals,
    /// The sections, in the order in which they are shown.
    pub sections: Vec<Section>,
}

impl Digest {
    /// The section of a class, if dumps of this mode have it.
    #[must_use]
    pub fn section(&self, class: Class) -> Option<&Section> {
        self.sections.iter().find(|section| section.class == class)
    }
}

/// Groups the blocks of `dump` by their stacks.
#[must_use]
pub fn digest(dump: &Dump, how: &Grouping, stacks: &mut Stacks) -> Digest {
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
    for block in &dump.blocks {
        heap.add(block.num, block.req, block.slop);
        let alloc = block.alloc.map_or(grouped.unrecorded, |trace| grouped.traces[trace.index()]);
        let section = section_of(dump, block, &grouped, &mut reports);
        builders[section].enter(block, alloc, &reports);
    }
    let section =
        |(&class, builder): (&Class, Builder)| Section { class, records: builder.records };
    let sections = classes.iter().zip(builders).map(section).collect();
    Digest { dmd_env_vars: vec![dump.invocation.dmd_env_var.clone()], mode, heap, sections }
}

/// The place of the block's section; `reports` becomes the stacks that reported it.
fn section_of(dump: &Dump, block: &Block, grouped: &Grouped, reports: &mut Vec<StackId>) -> usize {
    reports.clear();
    if dump.invocation.mode != Mode::DarkMatter {
        return 0;
    }
    let Some(traces) = dump.reports(block) else { return 1 };
    reports.extend(traces.iter().map(|trace| grouped.traces[trace.index()]));
    // An empty list of reports counts as twice, as in dmd.py.
    if reports.len() == 1 { 2 } else { 0 }
}

/// The records of a section while blocks are entered.
#[derive(Default)]
struct Builder {
    records: Vec<Record>,
    by_stacks: FxHashMap<(StackId, Box<[StackId]>), usize>,
    by_alloc: FxHashMap<StackId, usize>,
    sizes: FxHashMap<(usize, u64), usize>,
}

impl Builder {
    fn enter(&mut self, block: &Block, alloc: StackId, reports: &[StackId]) {
        let next = self.records.len();
        let at = if reports.is_empty() {
            *self.by_alloc.entry(alloc).or_insert(next)
        } else {
            *self.by_stacks.entry((alloc, reports.into())).or_insert(next)
        };
        if at == next {
            self.records.push(Record::new(alloc, reports));
        }
        let record = &mut self.records[at];
        record.totals.add(block.num, block.req, block.slop);
        record.addrs.extend(block.addr.map(u64::from));
        let usable = block.usable();
        let sizes = &mut record.sizes.0;
        let size = *self.sizes.entry((at, usable)).or_insert(sizes.len());
        if size == sizes.len() {
            sizes.push((usable.into(), 0));
        }
        sizes[size].1 += i128::from(block.num);
    }
}
