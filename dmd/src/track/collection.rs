//! A collection: the blocks that live, merged with what was claimed of them.

use std::io;
use std::marker::PhantomData;

use memreport::__private::{
    Block as FoundBlock, Claim, Ending, Findings, Found, OWN, Place, Recorder, Recording, Tracker,
    Wrong, as_own,
};
use memreport::{HeapCounters, UsableSize, heap_counters};

use super::blocks::Granule;
use super::books::{Books, ReportSet};
use super::entry::{Block, Entry, Generation};
use super::holders::{HolderId, Holders};
use super::hooks::{BLOCKS, DEAD, generation, next_generation};
use super::marks::{self, Heard, Line, Marks};
use super::options::Mode;
use super::pages::{self, PageList};
use super::scan::{Frozen, FrozenBlock};
use super::{plan, sites, sys};
use crate::dump::{Contents, Dump, Scanned, ScannedBlock, Sum, Summary};

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
        plan::plan().is_awake()
    }

    fn tracks_every_block(&self) -> bool {
        !plan::has_gaps()
    }

    fn state(&self) -> String {
        plan::state()
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

    #[inline]
    fn exact_block(&self, start: usize, size: usize) -> Option<usize> {
        BLOCKS.whole(Self::GRANULE, start, size).map(|(usable, _)| usable)
    }

    #[inline]
    fn entry_address(&self, address: usize) -> *const u8 {
        BLOCKS.entry_address(Self::GRANULE, address)
    }

    fn begin(&self) -> Box<dyn Recording> {
        // The next generation must be free: blocks of the last time it was in use grow old now.
        BLOCKS.age(Self::GRANULE, generation().next());
        let new = next_generation();
        let at_begin = heap_counters().unwrap_or_default();
        let blocks = usize::try_from(at_begin.live_blocks()).unwrap_or(0);
        let marks = Marks::new(Self::GRANULE, new, blocks);
        Box::new(Collection { marks, granule: Self::GRANULE, new, at_begin })
    }

    fn own_memory(&self, report: &mut dyn FnMut(&'static str, usize, &'static str)) {
        report(
            "explicit/dmd/tables",
            own_bytes(Self::GRANULE),
            "DMD's tables of blocks and stacks. None of it is on the program's heap.",
        );
    }
}

/// What the tracker's own tables take.
fn own_bytes(granule: Granule) -> usize {
    pages::mapped().saturating_sub(BLOCKS.untouched(granule))
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
    let wrong = match block {
        Some(_) => Wrong::Interior,
        None if plan::has_gaps() => Wrong::Untracked,
        None => Wrong::NonHeap,
    };
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
    /// What lived when the collection began. Where blocks are not entered, it cannot be told later which are new.
    at_begin: HeapCounters,
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
    fn found(mut self, ending: Ending<'_>) -> Dump {
        let marks = Marks::new(self.granule, self.new, 0);
        let heard = std::mem::replace(&mut self.marks, marks).into_heard();
        let mut holders = Holders::none(self.granule, self.new);
        if plan::mode().has_reports() || plan::mode() == Mode::Scan {
            // The first module is the program itself.
            let data = sys::modules().into_iter().next().map(|module| module.data);
            holders.find(&heard.skips, heard.lines(), &data.unwrap_or_default());
        }
        let mut notes = Vec::new();
        let count = self.count(&heard, &holders, &mut notes);
        let Count { mut books, heap, born_during, own, scanned, .. } = count;
        let has_gaps = plan::has_gaps();
        let heap = if has_gaps { self.at_begin } else { heap };
        let outside = if has_gaps { Sum::default() } else { born_during.and(own) };
        let of = |counted: u64, outside: usize| {
            usize::try_from(counted).unwrap_or(usize::MAX).saturating_sub(outside)
        };
        let heap_allocated = of(heap.live_bytes(), outside.bytes);
        let summary = &mut books.summary;
        let tracked = summary.unreported.and(summary.once).and(summary.twice);
        if has_gaps {
            let blocks = of(heap.live_blocks(), outside.blocks).saturating_sub(tracked.blocks);
            summary.untracked = Sum { blocks, bytes: heap_allocated.saturating_sub(tracked.bytes) };
        }
        if plan::mode() == Mode::Cumulative {
            let is_own =
                |site| sites::site(site).is_some_and(|site| u32::from(site.on_alloc) == OWN);
            DEAD.kinds().filter(|kind| !is_own(kind.site)).for_each(|kind| books.bury(kind));
        }
        let summary = Summary {
            heap_allocated,
            unmeasured: ending.unmeasured,
            born_during,
            lost_blocks: BLOCKS.lost() + DEAD.lost() + books.kinds.lost,
            lost_marks: heard.lost() + books.lost(),
            ..books.summary
        };
        let (reports, wrong) = books.reports(ending.reporters);
        let sampled = plan::sampled_chance().map(|_| books.sampled);
        Dump::new(
            Contents {
                kinds: books.kinds,
                scanned,
                reports,
                wrong,
                notes,
                sampled,
                fields: heard.fields,
                holders,
                tracker_bytes: own_bytes(self.granule),
            },
            summary,
            ending.moment,
        )
    }
}

impl Collection {
    /// Counts the blocks: those of a frozen copy of the heap, if contents are wanted and it can be made.
    fn count<'c>(
        &'c self,
        heard: &'c Heard,
        holders: &'c Holders,
        notes: &mut Vec<String>,
    ) -> Count<'c> {
        if plan::mode() != Mode::Scan {
            return Count::new(self, heard, holders).all_blocks();
        }
        Count::new(self, heard, holders).scan().unwrap_or_else(|error| {
            notes.push(format!("the contents of blocks are missing: {error}"));
            // Begun anew: a copy that cannot be read to its end has been counted in part.
            let mut count = Count::new(self, heard, holders);
            count.scanned = Some(Scanned { file: None, blocks: PageList::new() });
            count.all_blocks()
        })
    }
}

/// One pass over all blocks. The sums of the heap are read with it, and nothing is allocated in between.
struct Count<'c> {
    collection: &'c Collection,
    books: Books<'c>,
    /// Marks whose addresses are still to come.
    unread: &'c [Line],
    holders: &'c Holders,
    heap: HeapCounters,
    born_during: Sum,
    own: Sum,
    /// The blocks one by one, if they are wanted so.
    scanned: Option<Scanned>,
}

impl<'c> Count<'c> {
    fn new(collection: &'c Collection, heard: &'c Heard, holders: &'c Holders) -> Self {
        Count {
            collection,
            books: Books::new(collection.granule, heard),
            unread: heard.lines(),
            holders,
            heap: HeapCounters::default(),
            born_during: Sum::default(),
            own: Sum::default(),
            scanned: None,
        }
    }

    fn all_blocks(mut self) -> Self {
        self.heap = heap_counters().unwrap_or_default();
        BLOCKS.for_each(self.collection.granule, |address, block, entry| {
            self.take(FrozenBlock { address, entry, block, contents: None });
        });
        self.books.enter_gone(self.unread);
        self
    }

    /// As [`all_blocks`](Self::all_blocks), from a frozen copy of the heap.
    fn scan(mut self) -> io::Result<Self> {
        let frozen = Frozen::take(&BLOCKS, self.collection.granule)?;
        self.scanned = Some(Scanned { file: None, blocks: PageList::new() });
        // The sums of that instant.
        self.heap = HeapCounters {
            allocated_bytes: frozen.live_bytes,
            allocations: frozen.live_blocks,
            ..HeapCounters::default()
        };
        frozen.for_each(|block| self.take(block))?;
        self.books.enter_gone(self.unread);
        if let Some(scanned) = &mut self.scanned {
            scanned.file = Some(frozen.file);
        }
        Ok(self)
    }

    fn take(&mut self, FrozenBlock { address, entry, block, contents }: FrozenBlock) {
        let Some((reports, holder)) = self.enter(address, block, entry) else { return };
        self.books.group(block, reports, holder);
        if let Some(scanned) = &mut self.scanned {
            let age = self.books.age(block.time);
            // One that is lost is counted there.
            let _ = scanned.blocks.push(ScannedBlock {
                address,
                block,
                reports,
                holder,
                age,
                contents,
            });
        }
    }

    /// Enters a block, unless it is none of the program's: born during the collection, or the tracker's own.
    fn enter(
        &mut self,
        address: usize,
        block: Block,
        entry: Entry,
    ) -> Option<(ReportSet, HolderId)> {
        let before = self.unread.iter().take_while(|line| marks::address(line) < address).count();
        let (gone, rest) = self.unread.split_at(before);
        let own = rest.iter().take_while(|line| marks::address(line) == address).count();
        let (lines, rest) = rest.split_at(own);
        self.unread = rest;
        self.books.enter_gone(gone);
        let site = sites::site(block.site);
        let is_own = site.is_some_and(|site| u32::from(site.on_alloc) == OWN);
        if block.birth == self.collection.new || is_own {
            let sum = if is_own { &mut self.own } else { &mut self.born_during };
            sum.add(block.usable);
            self.books.enter_gone(lines);
            return None;
        }
        let reports = self.books.enter((address, block), site, lines);
        let holder = match reports {
            ReportSet::NOBODY => self.holders.of(address, entry),
            _ => HolderId::default(),
        };
        Some((reports, holder))
    }
}
