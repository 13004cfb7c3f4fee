//! A collection, from the first claim to the dump.

use std::mem;

use memreport::__private::{Ending, Findings, HeapWatch, OWN, Recorder, Recording, as_own};

use super::claims::starts::Starts;
use super::claims::{ClaimBuffer, ClaimLog};
use super::findings::{Contents, Dump, Scanned};
use super::holders::reached::Reached;
use super::holders::thread_stacks::ThreadStacks;
use super::holders::{Holders, enabled};
use super::pass::{HeapPass, PassSums};
use super::restriction::Restriction;
use super::summary::{Sum, Summary};

use crate::mem::lazy_slice::mapped_bytes;
use crate::mem::sys;
use crate::sample::options::Mode;
use crate::sample::plan::{self, WholePlan};
use crate::stack::site;
use crate::stack::thread::{self, RegisteredThread};
use crate::table::blocks::Granule;
use crate::table::epoch::{Epoch, begin_epoch, epoch};
use crate::table::packed_block::SiteId;
use crate::table::{BLOCKS, FREED, has_gaps};

/// Returns a note if allocations were refused a number for their stack or thread.
fn note_of_refused(allocations: u64) -> Option<String> {
    (allocations > 0).then(|| {
        format!(
            "{allocations} allocations so far have no stack or no thread: the program has more \
             different stacks than can be numbered; `--stacks=none` or a profile needs fewer"
        )
    })
}

/// Returns notes of what is missing because memory was short.
fn notes_of_shortage(summary: &Summary) -> impl Iterator<Item = String> + use<> {
    let untracked = BLOCKS.lost();
    let (unlisted, claims) = (summary.lost_blocks.saturating_sub(untracked), summary.lost_claims);
    let of_untracked = format!(
        "memory was short when {untracked} blocks were allocated: those that are live are among \
         the untracked ones"
    );
    let of_unlisted = format!("memory was short for the dump, which lacks {unlisted} blocks");
    let of_claims = format!(
        "memory was short when {claims} claims were made: blocks that were reported by them alone \
         are listed as unreported"
    );
    [(untracked, of_untracked), (unlisted, of_unlisted), (claims, of_claims)]
        .into_iter()
        .filter_map(|(lost, note)| (lost > 0).then_some(note))
}

/// Returns the bytes of the tracker's own tables.
pub(super) fn tracker_bytes(granule: Granule) -> usize {
    mapped_bytes().saturating_sub(BLOCKS.untouched_bytes(granule))
}

/// A collection in progress.
pub(super) struct Collection {
    claims: ClaimBuffer,
    granule: Granule,
    /// The epoch of blocks that are allocated during the collection, which leaves them out.
    epoch: Epoch,
    /// The plan at the beginning, which may change meanwhile.
    plan: WholePlan,
    /// The heap since the beginning. If the table has gaps, the blocks that were allocated and
    /// freed during the collection cannot be counted later.
    watch: HeapWatch,
}

impl Recording for Collection {
    fn recorder(&self) -> &dyn Recorder {
        &self.claims
    }

    fn finish(self: Box<Self>, ending: Ending<'_>) -> Box<dyn Findings> {
        as_own(|| Box::new(self.into_dump(ending)) as Box<dyn Findings>)
    }
}

impl Collection {
    /// Begins a collection, and with it an epoch.
    pub(super) fn begin(granule: Granule) -> Self {
        // Before the epoch: the dump has the blocks from before it.
        let plan = plan::whole_plan();
        let mut starts = Starts::new(granule);
        // Epochs are reused: blocks of the next one's last use are moved to an older epoch first.
        BLOCKS.age(granule, epoch().next(), |block| match block {
            Some((start, usable)) => starts.insert(start, usable),
            None => starts.set_incomplete(),
        });
        let epoch = begin_epoch();
        let watch = HeapWatch::begin();
        let blocks = usize::try_from(watch.at_begin().live_blocks()).unwrap_or(0);
        let claims = ClaimBuffer::new(granule, epoch, blocks, starts);
        Collection { claims, granule, epoch, plan, watch }
    }

    fn into_dump(mut self, ending: Ending<'_>) -> Dump {
        let empty = ClaimBuffer::new(self.granule, self.epoch, 0, Starts::new(self.granule));
        let claim_log = mem::replace(&mut self.claims, empty).into_log();
        let reached = Reached::find(&claim_log.roots, self.epoch, claim_log.sorted());
        let holders = self.holders(&claim_log);
        let stacks = self.stacks();
        let mut notes: Vec<String> = note_of_refused(site::refused()).into_iter().collect();
        notes.extend(stacks.note());
        let pass = self.count_blocks(&claim_log, (&holders, &reached), &mut notes);
        let HeapPass { mut balance, sums, scanned, .. } = pass;
        let allocated_during = sums.allocated_during;
        let is_restricted = Restriction::current().is_some();
        let heap_allocated = if is_restricted {
            balance.summary.tracked().bytes
        } else {
            self.count_untracked(sums, &mut balance.summary)
        };
        if !is_restricted && self.plan.mode == Mode::Cumulative {
            FREED
                .kinds()
                .filter(|kind| !is_trackers_own(kind.site))
                .for_each(|kind| balance.add_freed(kind));
        }
        let summary = Summary {
            heap_allocated,
            unmeasured: if is_restricted { 0 } else { ending.unmeasured },
            allocated_during,
            lost_blocks: BLOCKS.lost()
                + FREED.lost()
                + balance.groups.lost
                + scanned.as_ref().map_or(0, |scanned| scanned.blocks.lost),
            lost_claims: claim_log.lost() + balance.lost(),
            ..balance.summary
        };
        notes.extend(notes_of_shortage(&summary));
        let (reports, wrong) = (balance.reports(ending.reporters), balance.wrong_reports());
        let attributed = balance.attributed(&reports);
        let attribution_notes = balance.attribution_notes(self.plan);
        let sampled = self.plan.probability.map(|_| balance.sampled);
        let contents = Contents {
            groups: balance.groups,
            scanned,
            reports,
            attributed,
            attribution_notes,
            wrong,
            notes,
            sampled,
            fields: claim_log.fields,
            holders,
            stacks,
            tracker_bytes: tracker_bytes(self.granule),
        };
        Dump::new(self.plan, contents, summary, ending.moment)
    }

    /// Finds the holders of unreported blocks, in modes whose dumps show them.
    fn holders(&self, claim_log: &ClaimLog) -> Holders {
        let mut holders = Holders::new(self.granule, self.epoch, self.plan.mode);
        if self.plan.mode.has_reports() || self.plan.mode == Mode::Scan {
            // The first module is the program itself.
            let mut modules = sys::modules().into_iter();
            let data = modules.next().map(|module| module.data);
            holders.find(&claim_log.skipped, claim_log.sorted(), &data.unwrap_or_default());
            if self.plan.mode == Mode::Scan && enabled::is_enabled() {
                // The C library's own lists of free memory lead into blocks.
                let in_c_library = (libc::getpid as *const ()).addr();
                modules
                    .filter(|module| !module.contains(in_c_library))
                    .for_each(|module| holders.add_statics(&module.data));
            }
        }
        holders
    }

    /// Reads the stacks of all threads, for a scan.
    fn stacks(&self) -> ThreadStacks {
        if self.plan.mode != Mode::Scan || !enabled::is_enabled() {
            return ThreadStacks::empty();
        }
        let threads: Vec<RegisteredThread> = thread::registered().collect();
        ThreadStacks::read(self.granule, &threads)
    }

    /// Returns the bytes of the whole heap. If the table has gaps, also sets the untracked sum.
    fn count_untracked(&self, sums: PassSums, summary: &mut Summary) -> usize {
        if !has_gaps() {
            return sums.heap_of(summary.tracked().bytes);
        }
        let heap = self.watch.at_begin();
        let tracked = summary.tracked();
        let grown = usize::try_from(self.watch.growth()).unwrap_or(0);
        summary.share_transient_with_gaps(grown);
        let whole = |counted: u64| usize::try_from(counted).unwrap_or(usize::MAX);
        let own = sums.own_before;
        let bytes = whole(heap.live_bytes()).saturating_sub(own.bytes);
        let blocks = whole(heap.live_blocks()).saturating_sub(own.blocks + tracked.blocks);
        summary.untracked = Sum { blocks, bytes: bytes.saturating_sub(tracked.bytes) };
        bytes
    }

    /// Counts all blocks: in mode `scan` those of a frozen copy of the heap, if one can be made.
    fn count_blocks<'c>(
        &self,
        claim_log: &'c ClaimLog,
        holders: (&'c Holders, &'c Reached),
        notes: &mut Vec<String>,
    ) -> HeapPass<'c> {
        let pass = || HeapPass::new(self.granule, self.epoch, self.plan, claim_log, holders);
        if self.plan.mode != Mode::Scan {
            return pass().over_table();
        }
        pass().over_frozen_copy().unwrap_or_else(|error| {
            notes.push(format!("the contents of blocks are missing: {error}"));
            // A new pass, because the failed one has counted a part of the blocks.
            let mut pass = pass();
            pass.scanned = Some(Scanned::empty());
            pass.over_table()
        })
    }
}

/// Returns whether blocks of this site are the tracker's own.
fn is_trackers_own(site: SiteId) -> bool {
    site::site(site).is_some_and(|site| u32::from(site.on_alloc) == OWN)
}
