//! A collection: the blocks that live, merged with what was claimed of them.

use std::collections::HashMap;
use std::marker::PhantomData;

use memreport::__private::{
    Block as FoundBlock, Claim, Ending, Findings, Found, OWN, Place, Recorder, Recording, Tracker,
    Wrong, as_own, on_alloc_path,
};
use memreport::{Field, UsableSize, heap_counters};

use super::blocks::Granule;
use super::entry::{Block, Entry, Generation};
use super::hooks::{BLOCKS, State, generation, next_generation, state};
use super::marks::{Mark, Marks};
use super::sites::{self, SiteId};
use super::{pages, start};
use crate::dump::{Dump, Group, Report, Sum, Summary, Wish, WrongIs, WrongReport};

/// The tracker of a program whose allocator is over `A`.
#[derive(Debug)]
pub struct Tracking<A> {
    _allocator: PhantomData<fn() -> A>,
}

impl<A: UsableSize> Tracking<A> {
    /// There is only one.
    pub const NEW: Self = Tracking { _allocator: PhantomData };

    const GRANULE: Granule = Granule::of_spacing(A::SPACING);
}

impl<A: UsableSize + 'static> Tracker for Tracking<A> {
    fn is_awake(&self) -> bool {
        matches!(state(), State::Table | State::Stacks)
    }

    fn look_up(&self, claim: Claim) -> Found {
        match claim.place {
            Place::Start => look_up_start(Self::GRANULE, claim),
            Place::Inside => {
                let block = enclosing(Self::GRANULE, claim.address);
                Found { bytes: block.map_or(0, |block| block.usable), block, wrong: None }
            }
        }
    }

    fn begin(&self) -> Box<dyn Recording> {
        // The next generation must be free: blocks of the last time it was in use grow old now.
        BLOCKS.age(Self::GRANULE, generation().next());
        let new = next_generation();
        Box::new(Collection { marks: Marks::new(), granule: Self::GRANULE, new })
    }

    fn own_memory(&self, report: &mut dyn FnMut(&'static str, usize, &'static str)) {
        let bytes = pages::mapped().saturating_sub(BLOCKS.untouched(Self::GRANULE));
        report(
            "explicit/dmd/tables",
            bytes,
            "DMD's tables of blocks and stacks. None of it is on the program's heap.",
        );
    }
}

fn look_up_start(granule: Granule, claim: Claim) -> Found {
    if let Some((block, entry)) = BLOCKS.starting_at(granule, claim.address) {
        let agrees = claim.size.is_none_or(|size| size == block.requested);
        return Found {
            bytes: if agrees { block.usable } else { claim.size.unwrap_or(0) },
            block: Some(found_block(claim.address, block, entry)),
            wrong: if agrees { None } else { Some(Wrong::Partial) },
        };
    }
    let block = enclosing(granule, claim.address);
    let wrong = if block.is_some() { Wrong::Interior } else { Wrong::NonHeap };
    Found { bytes: claim.size.unwrap_or(0), block, wrong: Some(wrong) }
}

fn enclosing(granule: Granule, address: usize) -> Option<FoundBlock> {
    let (start, block, entry) = BLOCKS.enclosing(granule, address)?;
    Some(found_block(start, block, entry))
}

fn found_block(start: usize, block: Block, entry: Entry) -> FoundBlock {
    FoundBlock { start, requested: block.requested, usable: block.usable, identity: entry.word() }
}

struct Collection {
    marks: Marks,
    granule: Granule,
    /// The generation of blocks that are born during the collection, and so are left out of it.
    new: Generation,
}

impl Recording for Collection {
    fn recorder(&self) -> &dyn Recorder {
        &self.marks
    }

    fn finish(self: Box<Self>, ending: Ending<'_>) -> Box<dyn Findings> {
        as_own(|| Box::new(self.found(ending)) as Box<dyn Findings>)
    }
}

impl Collection {
    /// Whether the block is in the books: born before the collection, and not the tracker's own.
    fn counts(&self, block: Block) -> bool {
        block.birth != self.new
            && sites::site(block.site).is_none_or(|site| u32::from(site.on_alloc) != OWN)
    }

    fn found(mut self, ending: Ending<'_>) -> Dump {
        let mut marks = std::mem::replace(&mut self.marks, Marks::new()).into_list();
        let lost_marks = marks.lost;
        let marks = marks.as_mut_slice();
        marks.sort_by_key(|mark| mark.address);
        let mut books = Books::new(self.granule, ending.reporters);
        // Back to back, with no allocation of this thread in between: what is live now, and what of it is new.
        let live = heap_counters().map_or(0, |counters| counters.live_bytes());
        let mut born_during = Sum::default();
        let mut own_bytes = 0;
        BLOCKS.for_each(self.granule, |_, block, _| {
            if block.birth == self.new {
                born_during.add(block.usable);
            } else if !self.counts(block) {
                own_bytes += block.usable;
            }
        });
        let mut unread = &*marks;
        BLOCKS.for_each(self.granule, |address, block, entry| {
            let before = unread.partition_point(|mark| mark.address < address);
            let (gone, rest) = unread.split_at(before);
            let own = rest.partition_point(|mark| mark.address == address);
            let (own, rest) = rest.split_at(own);
            unread = rest;
            books.enter_gone(gone);
            if self.counts(block) {
                books.enter(block, entry, own);
            } else {
                books.enter_gone(own);
            }
        });
        books.enter_gone(unread);
        let heap_allocated = usize::try_from(live)
            .unwrap_or(usize::MAX)
            .saturating_sub(born_during.bytes + own_bytes);
        let summary = Summary { heap_allocated, unmeasured: ending.unmeasured, ..books.summary };
        let options = start::variable().and_then(Result::ok).unwrap_or_default();
        Dump::new(
            Wish {
                variable: start::variable_text().map(str::to_owned),
                mode: options.mode.name(),
                shows_stats: options.show_dump_stats,
            },
            ending.moment,
            Summary { born_during, lost_blocks: BLOCKS.lost(), lost_marks, ..summary },
            books
                .groups
                .into_iter()
                .map(|(key, count)| key.group(count, &books.report_sets))
                .collect(),
            (books.reports, books.wrong),
        )
    }
}

/// What a collection finds, while it is found.
struct Books<'e> {
    granule: Granule,
    reporters: &'e [String],
    summary: Summary,
    groups: HashMap<GroupKey, u64>,
    /// Who reports, by number.
    reports: Vec<Report>,
    report_numbers: HashMap<(u32, Option<*const Field>), u32>,
    /// Which of them report a block together, by number; 0 is nobody.
    report_sets: Vec<Vec<u32>>,
    report_set_numbers: HashMap<Vec<u32>, u32>,
    wrong: Vec<WrongReport>,
}

/// Blocks that are alike.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct GroupKey {
    requested: usize,
    usable: usize,
    site: SiteId,
    reports: u32,
}

impl GroupKey {
    fn group(self, count: u64, report_sets: &[Vec<u32>]) -> Group {
        let reports = report_sets.get(self.reports as usize).cloned().unwrap_or_default();
        Group { requested: self.requested, usable: self.usable, site: self.site, reports, count }
    }
}

/// Marks in the name of a heap that reports on allocation have this bit in their reporter's number.
const ON_ALLOC: u32 = 1 << 31;

impl<'e> Books<'e> {
    fn new(granule: Granule, reporters: &'e [String]) -> Self {
        Books {
            granule,
            reporters,
            summary: Summary::default(),
            groups: HashMap::new(),
            reports: Vec::new(),
            report_numbers: HashMap::new(),
            report_sets: vec![Vec::new()],
            report_set_numbers: HashMap::from([(Vec::new(), 0)]),
            wrong: Vec::new(),
        }
    }

    /// A block that lived before the collection, and the marks at its start.
    fn enter(&mut self, block: Block, entry: Entry, marks: &[Mark]) {
        let on_alloc = sites::site(block.site).map_or(0, |site| u32::from(site.on_alloc));
        let (own, strange): (Vec<&Mark>, Vec<&Mark>) =
            marks.iter().partition(|mark| mark.identity == entry.word());
        for mark in strange {
            self.enter_wrong(mark, None);
        }
        let mut set = Vec::new();
        let mut claimed = Vec::new();
        if on_alloc != 0 {
            set.push(self.report_number(on_alloc | ON_ALLOC, None));
            claimed.push(block.usable);
        }
        for mark in own {
            set.push(self.report_number(mark.reporter, mark.field));
            claimed.push(mark.bytes);
            if mark.wrong.is_some() {
                self.enter_wrong(mark, Some(block));
            }
        }
        self.sum_up(block, &claimed);
        let key = GroupKey {
            requested: block.requested,
            usable: block.usable,
            site: block.site,
            reports: self.set_number(set),
        };
        *self.groups.entry(key).or_default() += 1;
    }

    fn sum_up(&mut self, block: Block, claimed: &[usize]) {
        let summary = &mut self.summary;
        match claimed {
            [] => summary.unreported.add(block.usable),
            [_] => summary.once.add(block.usable),
            _ => summary.twice.add(block.usable),
        }
        if let Some((first, others)) = claimed.split_first() {
            summary.short += block.usable.saturating_sub(*first);
            summary.over_counted +=
                first.saturating_sub(block.usable) + others.iter().sum::<usize>();
        }
    }

    /// Marks of blocks that are not there: never were, or are gone by now.
    fn enter_gone(&mut self, marks: &[Mark]) {
        for mark in marks {
            self.enter_wrong(mark, None);
        }
    }

    fn enter_wrong(&mut self, mark: &Mark, block: Option<Block>) {
        let block = match mark.wrong {
            // The mark is about the address; the block around it is worth knowing.
            Some(Wrong::Interior) => {
                BLOCKS.enclosing(self.granule, mark.address).map(|(_, block, _)| block)
            }
            _ => block,
        };
        let is = match mark.wrong {
            Some(Wrong::NonHeap) => WrongIs::NonHeap,
            Some(Wrong::Interior) => WrongIs::Interior,
            Some(Wrong::Partial) if block.is_some() => WrongIs::Partial,
            _ => WrongIs::FreedSince,
        };
        if is != WrongIs::Partial {
            self.summary.over_counted += mark.bytes;
        }
        let report = self.report_number(mark.reporter, mark.field);
        self.wrong.push(WrongReport {
            is,
            address: mark.address,
            claimed: mark.bytes,
            report,
            block: block.map(Into::into),
        });
    }

    fn report_number(&mut self, reporter: u32, field: Option<&'static Field>) -> u32 {
        let key = (reporter, field.map(std::ptr::from_ref));
        if let Some(number) = self.report_numbers.get(&key) {
            return *number;
        }
        let path = if reporter & ON_ALLOC != 0 {
            on_alloc_path(reporter & !ON_ALLOC).map(str::to_owned)
        } else {
            (reporter as usize).checked_sub(1).and_then(|index| self.reporters.get(index)).cloned()
        };
        let number = u32::try_from(self.reports.len()).unwrap_or(u32::MAX);
        self.reports.push(Report { path: path.unwrap_or_default(), field });
        self.report_numbers.insert(key, number);
        number
    }

    fn set_number(&mut self, set: Vec<u32>) -> u32 {
        if let Some(number) = self.report_set_numbers.get(&set) {
            return *number;
        }
        let number = u32::try_from(self.report_sets.len()).unwrap_or(u32::MAX);
        self.report_sets.push(set.clone());
        self.report_set_numbers.insert(set, number);
        number
    }
}
