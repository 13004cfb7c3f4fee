//! The balance of one collection: adds up each block with its claims, and groups similar blocks.
//!
//! Nothing here allocates on the program's heap, which is being counted.

mod c_heap;
mod origin;
mod symbols;
#[cfg(test)]
mod tests;

use memreport::__private::{AttributedBy, C_HEAP, Claimant, Wrong, inferred_path, on_alloc_path};
use memreport::Field;

use self::c_heap::Requesters;
use self::origin::Origins;
use super::age::Age;
use super::claims::ClaimLog;
use super::claims::claimants::ClaimantId;
use super::claims::words::{Allocated, ClaimWords, ResolvedClaim};
use super::findings::{AttributedBytes, Report, WrongBlock, WrongKind, WrongReport};
use super::groups::{GroupId, GroupKey, Groups, ReportSet};
use super::holders::HolderId;
use super::holders::reached::{Reached, ReachedByAddress};
use super::summary::{Sampled, Summary};
use crate::mem::local_interner::LocalInterner;
use crate::mem::pages::PageList;
use crate::mem::sys;
use crate::sample::plan::WholePlan;
use crate::sample::rate::SamplingRate;
use crate::stack::site::Site;
use crate::table::blocks::{Granule, LiveBlock};
use crate::table::freed_counts::FreedKind;
use crate::table::packed_block::Block;
use crate::table::{BLOCKS, has_gaps};

/// The sums, groups and wrong reports of a collection in progress.
pub(crate) struct Balance<'c> {
    granule: Granule,
    claim_log: &'c ClaimLog,
    /// The time from which ages are computed, in nanoseconds of the monotonic clock.
    now: u64,
    pub(crate) summary: Summary,
    pub(crate) sampled: Sampled,
    pub(crate) groups: Groups,
    /// Reports by number: the reporter, and the address of the field or 0; of blocks of C's
    /// functions, the address of the function that requested them.
    reports: LocalInterner<(u32, u64)>,
    fields: PageList<Option<&'static Field>>,
    /// By claimant: the number of its report plus one; 0 if it has none yet.
    by_claimant: PageList<u32>,
    wrong: PageList<WrongReport>,
    requesters: Requesters,
    origins: Origins,
    /// Reached blocks that are not added yet. Blocks are added by address.
    reached: ReachedByAddress<'c>,
    has_reached_values: bool,
    /// By report: the usable bytes of unclaimed blocks that were attributed to it.
    attributed: PageList<usize>,
    last: LastBlock,
}

/// The block that was added last.
struct LastBlock {
    start: usize,
    usable: usize,
    reports: ReportSet,
}

impl LastBlock {
    /// Returns whether the address is inside the block. The blocks are added by address, and so are
    /// the claims between them.
    fn contains(&self, address: usize) -> bool {
        (self.start..self.start + self.usable).contains(&address)
    }
}

/// The bit in a reporter's number that marks heaps whose blocks are reported on allocation.
const ON_ALLOC: u32 = 1 << 31;

/// The bit in a reporter's number that marks the reporters of crates and scopes.
const OF_ORIGIN: u32 = 1 << 30;

impl<'c> Balance<'c> {
    pub(crate) fn new(
        granule: Granule,
        plan: WholePlan,
        claim_log: &'c ClaimLog,
        reached: &'c Reached,
    ) -> Self {
        Balance {
            granule,
            claim_log,
            now: sys::monotonic(),
            summary: Summary::default(),
            sampled: Sampled::default(),
            groups: Groups::new(),
            reports: LocalInterner::new(),
            fields: PageList::new(),
            by_claimant: PageList::zeros(claim_log.claimants.len()).unwrap_or(PageList::new()),
            wrong: PageList::new(),
            requesters: Requesters::find(plan),
            origins: Origins::find(plan),
            reached: reached.by_address(),
            has_reached_values: reached.has_values(),
            attributed: PageList::new(),
            last: LastBlock { start: 0, usable: 0, reports: ReportSet::NONE },
        }
    }

    /// Adds a block that was allocated before the collection, with the claims of its start.
    /// Returns its reports.
    pub(crate) fn add(
        &mut self,
        found: LiveBlock,
        site: Option<Site>,
        claims: &[ClaimWords],
    ) -> ReportSet {
        let LiveBlock { start, block, .. } = found;
        let mut set = ReportSet::NONE;
        let mut totals = ClaimTotals::default();
        let on_alloc = site.map_or(0, |site| u32::from(site.on_alloc));
        if on_alloc != 0 && on_alloc != C_HEAP {
            let report = self.report_number(on_alloc | ON_ALLOC, None);
            set = self.with_report(set, report);
            totals.add(block.usable, block.usable);
        }
        for claim in claims {
            let mut claim = self.claim_log.resolve(claim);
            if claim.allocated == Allocated::During {
                self.add_wrong(claim, None);
                continue;
            }
            if claim.requested.is_some_and(|requested| requested != block.requested) {
                claim.wrong = Some(Wrong::Partial);
            }
            let report = self.report_of(claim.claimant);
            set = self.with_report(set, report);
            totals.add(claim.bytes, block.usable);
            if claim.wrong.is_some() {
                self.add_wrong(claim, Some(block));
            }
        }
        if totals.count == 0
            && let Some(report) = self.attribute(found, site)
            && self.add_attributed(report, block.usable)
        {
            set = self.with_report(set, Some(report));
            totals.add(block.usable, block.usable);
        }
        self.add_to_summary(block, totals);
        self.last = LastBlock { start, usable: block.usable, reports: set };
        set
    }

    /// Returns the report of an unclaimed block that is attributed to one: by pointers from a
    /// field, by its origin, or by the function of C that requested it.
    fn attribute(&mut self, found: LiveBlock, site: Option<Site>) -> Option<u32> {
        if let Some(claimant) = self.reached.claimant_of(found.start, found.packed) {
            return self.report_of(claimant);
        }
        let site = site?;
        if let Some(reporter) = self.origins.of(site) {
            return self.intern_report(reporter | OF_ORIGIN, 0, None);
        }
        if u32::from(site.on_alloc) != C_HEAP {
            return None;
        }
        let requester = self.requesters.of(site, &self.origins);
        self.intern_report(C_HEAP | ON_ALLOC, requester, None)
    }

    /// Adds the bytes of an unclaimed block to the report that it is attributed to. Returns `false`
    /// if memory is short.
    fn add_attributed(&mut self, report: u32, usable: usize) -> bool {
        while self.attributed.as_slice().len() <= report as usize {
            if !self.attributed.push(0) {
                return false;
            }
        }
        self.attributed.as_mut_slice()[report as usize] += usable;
        true
    }

    /// Adds a block to its group, and returns the group; `None` if memory is short.
    pub(crate) fn group(
        &mut self,
        block: Block,
        reports: ReportSet,
        holder: HolderId,
    ) -> Option<GroupId> {
        let Block { requested, usable, site, rate, time, .. } = block;
        let age = Age::of(time, self.now);
        let key = GroupKey { requested, usable, site, reports, holder, rate, age, is_freed: false };
        self.groups.add(key, 1)
    }

    /// Adds freed blocks to their group.
    pub(crate) fn add_freed(&mut self, freed: FreedKind) {
        let FreedKind { requested, usable, site, count } = freed;
        let (reports, rate) = (ReportSet::NONE, SamplingRate::EVERY);
        let (holder, age) = (HolderId::default(), Age::default());
        let key = GroupKey { requested, usable, site, reports, holder, rate, age, is_freed: true };
        self.groups.add(key, count);
    }

    fn add_to_summary(&mut self, block: Block, claims: ClaimTotals) {
        let summary = &mut self.summary;
        let (sum, estimate) = match claims.count {
            0 => (&mut summary.unreported, &mut self.sampled.unreported),
            1 => (&mut summary.once, &mut self.sampled.once),
            _ => (&mut summary.twice, &mut self.sampled.twice),
        };
        sum.add(block.usable);
        if block.rate != SamplingRate::EVERY {
            let weight = block.rate.weight(block.usable);
            estimate.add(block.usable, weight);
            self.sampled.all.add(block.usable, weight);
        }
        summary.under_reported += claims.under;
        summary.over_reported += claims.over;
    }

    /// Adds claims of blocks that do not exist, or were freed during the collection.
    pub(crate) fn add_unmatched_claims(&mut self, claims: &[ClaimWords]) {
        for claim in claims {
            let mut claim = self.claim_log.resolve(claim);
            if claim.allocated == Allocated::Unknown && has_gaps() {
                claim.wrong = Some(Wrong::Untracked);
            }
            self.add_wrong(claim, None);
        }
    }

    /// Adds claims of an address at which the collection does not count the block: it was allocated
    /// later, or is the tracker's own.
    pub(crate) fn add_claims_left_out(&mut self, claims: &[ClaimWords]) {
        for claim in claims {
            self.add_wrong(self.claim_log.resolve(claim), None);
        }
    }

    fn add_wrong(&mut self, claim: ResolvedClaim, block: Option<Block>) {
        let mut reports = ReportSet::NONE;
        let mut wrong = claim.wrong;
        if wrong == Some(Wrong::Untracked) {
            if !self.last.contains(claim.address) {
                self.summary.reported_untracked += claim.bytes;
                return;
            }
            wrong = Some(Wrong::Interior);
        }
        let block = match wrong {
            // The claim is of the address; the dump also shows the block around it.
            Some(Wrong::Interior) => {
                let around = BLOCKS.enclosing(self.granule, claim.address);
                if around.is_some_and(|found| found.start == self.last.start) {
                    reports = self.last.reports;
                }
                around.map(|found| found.block)
            }
            _ => block,
        };
        let kind = match wrong {
            Some(Wrong::NonHeap) => WrongKind::NonHeap,
            Some(Wrong::Interior) => WrongKind::Interior,
            Some(Wrong::Partial) if block.is_some() => WrongKind::Partial,
            _ => return self.add_transient(claim),
        };
        if kind != WrongKind::Partial {
            self.summary.over_reported += claim.bytes;
        }
        let (address, claimed) = (claim.address, claim.bytes);
        let Some(report) = self.report_of(claim.claimant) else { return };
        let block = block.map(|block| WrongBlock {
            requested: block.requested,
            usable: block.usable,
            site: block.site,
            reports,
        });
        self.wrong.push(WrongReport { kind, address, claimed, report, block });
    }

    /// Adds a claim of a block that was allocated during the collection, or freed before its end.
    /// No report is wrong: other threads go on meanwhile.
    fn add_transient(&mut self, claim: ResolvedClaim) {
        // With gaps, the heap is counted at the beginning: blocks freed since are untracked ones.
        if claim.allocated == Allocated::Before && has_gaps() {
            self.summary.reported_untracked += claim.bytes;
        } else {
            self.summary.reported_transient += claim.bytes;
        }
    }

    /// Returns the set with one more report. A report without a number is left out.
    fn with_report(&mut self, set: ReportSet, report: Option<u32>) -> ReportSet {
        report.map_or(set, |report| self.groups.with_report(set, report))
    }

    /// Returns the number of a claimant's report; `None` if memory is short.
    #[inline]
    fn report_of(&mut self, claimant: ClaimantId) -> Option<u32> {
        let known = self.by_claimant.as_slice().get(claimant.0 as usize).copied();
        known.unwrap_or(0).checked_sub(1).or_else(|| self.find_report_of(claimant))
    }

    #[cold]
    fn find_report_of(&mut self, claimant: ClaimantId) -> Option<u32> {
        let Claimant { reporter, field } = self.claim_log.claimants.get(claimant);
        let report = self.report_number(reporter, field)?;
        if let Some(slot) = self.by_claimant.as_mut_slice().get_mut(claimant.0 as usize) {
            *slot = report + 1;
        }
        Some(report)
    }

    fn report_number(&mut self, reporter: u32, field: Option<&'static Field>) -> Option<u32> {
        let address = field.map_or(0, |field| std::ptr::from_ref(field).addr());
        self.intern_report(reporter, address, field)
    }

    fn intern_report(
        &mut self,
        reporter: u32,
        address: usize,
        field: Option<&'static Field>,
    ) -> Option<u32> {
        let number = self.reports.intern((reporter, address as u64))?;
        if number as usize == self.fields.as_slice().len() {
            self.fields.push(field);
        }
        Some(number)
    }

    /// Returns the number of wrong reports that were lost because memory was short.
    pub(crate) fn lost(&self) -> usize {
        self.wrong.lost
    }

    /// Returns the reports by number. `reporters` are the paths of the collection's reporters, of
    /// which the first has number 1.
    pub(crate) fn reports(&self, reporters: &[String]) -> Vec<Report> {
        let of_c = |reporter: u32| reporter == C_HEAP | ON_ALLOC;
        let keys = self.reports.keys();
        let functions = keys.iter().filter(|(reporter, _)| of_c(*reporter));
        let functions: Vec<_> = functions.map(|(_, function)| *function).collect();
        let mut c_heap = c_heap::paths(&functions).into_iter();
        let mut path = |reporter: u32, number: u32, field: Option<&'static Field>| {
            if of_c(reporter) {
                c_heap.next()
            } else if reporter & ON_ALLOC != 0 {
                on_alloc_path(reporter & !ON_ALLOC).map(str::to_owned)
            } else if reporter & OF_ORIGIN != 0 {
                let reporter = self.origins.reporter(reporter & !OF_ORIGIN);
                reporter.map(|reporter| reporter.path().to_owned())
            } else {
                let path = (reporter as usize).checked_sub(1).and_then(|at| reporters.get(at));
                match (path, field.filter(|_| self.attributed_to(number) > 0)) {
                    (Some(path), Some(field)) => Some(inferred_path(path, field)),
                    (path, _) => path.cloned(),
                }
            }
        };
        let numbered = keys.iter().zip(self.fields.as_slice()).zip(0..);
        let reports = numbered.map(|(((reporter, _), field), number)| Report {
            path: path(*reporter, number, *field).unwrap_or_default(),
            field: *field,
        });
        reports.collect()
    }

    /// Returns the bytes of unclaimed blocks that were attributed to a report.
    fn attributed_to(&self, report: u32) -> usize {
        self.attributed.as_slice().get(report as usize).copied().unwrap_or(0)
    }

    /// Returns the usable bytes of unclaimed blocks that were attributed, by the path of their
    /// report, which is among `reports`. Each reporter of an origin has an entry.
    pub(crate) fn attributed(&self, reports: &[Report]) -> Vec<AttributedBytes> {
        let keys = self.reports.keys().iter().map(|(reporter, _)| *reporter);
        let mut found: Vec<AttributedBytes> = Vec::new();
        let mut add = |path: &str, bytes: usize, by: AttributedBy| match found
            .iter_mut()
            .find(|known| known.path == path)
        {
            Some(known) => known.bytes += bytes,
            None => found.push(AttributedBytes { path: path.to_owned(), bytes, by }),
        };
        for number in 0..self.origins.len() {
            if let Some(reporter) = self.origins.reporter(number) {
                add(reporter.path(), 0, AttributedBy::Origin(reporter));
            }
        }
        for ((reporter, report), number) in keys.zip(reports).zip(0..) {
            let bytes = self.attributed_to(number);
            let by = if reporter & ON_ALLOC != 0 {
                Some(AttributedBy::CHeap)
            } else if reporter & OF_ORIGIN != 0 {
                self.origins.reporter(reporter & !OF_ORIGIN).map(AttributedBy::Origin)
            } else {
                report.field.map(AttributedBy::Field)
            };
            if let Some(by) = by.filter(|_| bytes > 0) {
                add(&report.path, bytes, by);
            }
        }
        found.sort_by(|one, other| one.path.cmp(&other.path));
        found
    }

    /// Returns why blocks could not be attributed, in sentences.
    pub(crate) fn attribution_notes(&self, plan: WholePlan) -> Vec<String> {
        let mut notes = self.origins.notes(plan);
        if plan.probability.is_some() && self.has_reached_values {
            notes.push(
                "a profile has a sample of the blocks: what fields with `reachable` lead to is not \
                 reported"
                    .to_owned(),
            );
        }
        notes
    }

    /// Returns the reports that match no whole block.
    pub(crate) fn wrong_reports(&self) -> Vec<WrongReport> {
        self.wrong.as_slice().to_vec()
    }
}

/// The sums of the claims of one block.
#[derive(Clone, Copy, Default)]
struct ClaimTotals {
    count: usize,
    /// Bytes of the block that its first claim leaves out.
    under: usize,
    /// Bytes that were claimed beyond the size of the block.
    over: usize,
}

impl ClaimTotals {
    fn add(&mut self, claimed: usize, usable: usize) {
        if self.count == 0 {
            self.under = usable.saturating_sub(claimed);
            self.over = claimed.saturating_sub(usable);
        } else {
            self.over += claimed;
        }
        self.count += 1;
    }
}
