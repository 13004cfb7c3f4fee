//! The books of one collection: every block is entered with what was claimed of it, and like blocks are put together.
//!
//! While they are kept, nothing is taken from the program's heap: it is being counted.

use memreport::__private::{Wrong, on_alloc_path};
use memreport::Field;

use super::age::Age;
use super::claim_words::{ClaimWords, ResolvedClaim};
use super::claimants::ClaimantId;
use super::claims::ClaimLog;
use super::findings::{Report, WrongBlock, WrongIs, WrongReport};
use super::holders::HolderId;
use super::summary::{Estimate, Sampled, Summary};
use crate::mem::local_interner::{Key, LocalInterner};
use crate::mem::pages::PageList;
use crate::mem::sys;
use crate::sample::rate::SamplingRate;
use crate::stack::site::{Site, SiteId};
use crate::table::BLOCKS;
use crate::table::blocks::Granule;
use crate::table::packed_block::Block;

/// Blocks that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) requested: usize,
    pub(crate) usable: usize,
    pub(crate) site: SiteId,
    pub(crate) reports: ReportSet,
    /// What holds them, if nobody reports them.
    pub(crate) holder: HolderId,
    pub(crate) rate: SamplingRate,
    /// How old they are, where that is kept.
    pub(crate) age: Age,
    /// They were given back, and are only counted.
    pub(crate) is_freed: bool,
}

impl Key for Kind {
    fn words(self) -> (u64, u64) {
        let sizes = (self.requested as u64) << 20 ^ self.usable as u64;
        let sizes = sizes ^ u64::from(self.holder.bits()).rotate_right(16);
        let sizes = sizes ^ u64::from(self.age.number()).rotate_right(10);
        (
            sizes,
            u64::from(self.site.number()) << 32
                | u64::from(self.reports.0) << 1
                | u64::from(self.is_freed),
        )
    }
}

/// Who reports a block: the number of a list of reports; 0 is nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReportSet(u32);

impl ReportSet {
    pub(crate) const NOBODY: ReportSet = ReportSet(0);
}

/// Blocks by kind, and lists of reports.
#[derive(Debug)]
pub(crate) struct Kinds {
    kinds: LocalInterner<Kind>,
    /// How many of each.
    counts: PageList<u64>,
    /// A list is its last report, and the list before it.
    sets: LocalInterner<(u32, u32)>,
    /// Blocks that there was no memory to group.
    pub(crate) lost: usize,
}

impl Kinds {
    const fn new() -> Self {
        Kinds {
            kinds: LocalInterner::new(),
            counts: PageList::new(),
            sets: LocalInterner::new(),
            lost: 0,
        }
    }

    fn add(&mut self, kind: Kind, count: u64) {
        let number = self.kinds.intern(kind);
        let place = number.and_then(|number| {
            if number as usize == self.counts.as_slice().len() {
                self.counts.push(0);
            }
            self.counts.as_mut_slice().get_mut(number as usize)
        });
        match place {
            Some(place) => *place += count,
            None => self.lost += usize::try_from(count).unwrap_or(usize::MAX),
        }
    }

    fn with_report(&mut self, set: ReportSet, report: u32) -> ReportSet {
        self.sets.intern((report, set.0)).map_or(set, |number| ReportSet(number + 1))
    }

    /// All kinds, and how many blocks there are of each.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Kind, u64)> {
        self.kinds.keys().iter().zip(self.counts.as_slice().iter().copied())
    }

    /// The numbers of the reports, the first first.
    pub(crate) fn reports(&self, set: ReportSet) -> impl Iterator<Item = u32> {
        let mut set = set.0;
        let from_last = std::iter::from_fn(move || {
            let (report, before) = *self.sets.keys().get((set as usize).checked_sub(1)?)?;
            set = before;
            Some(report)
        });
        let mut reports: Vec<u32> = from_last.collect();
        reports.reverse();
        reports.into_iter()
    }
}

/// What a collection finds, while it is found.
pub(crate) struct Balance<'h> {
    granule: Granule,
    heard: &'h ClaimLog,
    /// The moment up to which ages are counted.
    now: u64,
    pub(crate) summary: Summary,
    pub(crate) sampled: Sampled,
    pub(crate) kinds: Kinds,
    /// Who reports, by number: the reporter, and the address of the field.
    reports: LocalInterner<(u32, u64)>,
    fields: PageList<Option<&'static Field>>,
    /// By claimant: the number of its report plus one, 0 as long as it has none.
    by_claimant: PageList<u32>,
    wrong: PageList<WrongReport>,
    /// The start of the block that was entered last, and who reports it.
    last: (usize, ReportSet),
}

/// ClaimBuffer in the name of a heap that reports on allocation have this bit in their reporter's number.
const ON_ALLOC: u32 = 1 << 31;

impl<'h> Balance<'h> {
    pub(crate) fn new(granule: Granule, heard: &'h ClaimLog) -> Self {
        Balance {
            granule,
            heard,
            now: sys::monotonic(),
            summary: Summary::default(),
            sampled: Sampled::default(),
            kinds: Kinds::new(),
            reports: LocalInterner::new(),
            fields: PageList::new(),
            by_claimant: PageList::zeros(heard.claimants.len()).unwrap_or(PageList::new()),
            wrong: PageList::new(),
            last: (0, ReportSet::NOBODY),
        }
    }

    /// A block that lived before the collection, and the marks at its start. Says who reports it.
    pub(crate) fn enter(
        &mut self,
        (address, block): (usize, Block),
        site: Option<Site>,
        lines: &[ClaimWords],
    ) -> ReportSet {
        let mut set = ReportSet::NOBODY;
        let mut claims = Claims::default();
        let on_alloc = site.map_or(0, |site| u32::from(site.on_alloc));
        if on_alloc != 0 {
            let report = self.report_number(on_alloc | ON_ALLOC, None);
            set = self.reported(set, report);
            claims.add(block.usable, block.usable);
        }
        for line in lines {
            let mark = self.heard.mark(line);
            if !mark.is_old {
                self.enter_wrong(mark, None);
                continue;
            }
            let report = self.report_of(mark.claimant);
            set = self.reported(set, report);
            claims.add(mark.bytes, block.usable);
            if mark.wrong.is_some() {
                self.enter_wrong(mark, Some(block));
            }
        }
        self.sum_up(block, claims);
        self.last = (address, set);
        set
    }

    /// Puts the block among its like.
    pub(crate) fn group(&mut self, block: Block, reports: ReportSet, holder: HolderId) {
        let Block { requested, usable, site, rate, time, .. } = block;
        let age = self.age(time);
        let kind = Kind { requested, usable, site, reports, holder, rate, age, is_freed: false };
        self.kinds.add(kind, 1);
    }

    /// How old a block is that was made at this time.
    pub(crate) fn age(&self, time: u64) -> Age {
        Age::of(time, self.now)
    }

    /// Blocks that were given back.
    pub(crate) fn count_freed(&mut self, dead: crate::table::freed_counts::FreedKind) {
        let crate::table::freed_counts::FreedKind { requested, usable, site, count } = dead;
        let (reports, rate) = (ReportSet::NOBODY, SamplingRate::EVERY);
        let (holder, age) = (HolderId::default(), Age::default());
        let kind = Kind { requested, usable, site, reports, holder, rate, age, is_freed: true };
        self.kinds.add(kind, count);
    }

    fn sum_up(&mut self, block: Block, claims: Claims) {
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
        summary.short += claims.short;
        summary.over_reported += claims.over;
    }

    /// ClaimBuffer of blocks that are not there: never were, or are gone by now.
    pub(crate) fn add_gone_claims(&mut self, lines: &[ClaimWords]) {
        for line in lines {
            self.enter_wrong(self.heard.mark(line), None);
        }
    }

    fn enter_wrong(&mut self, mark: ResolvedClaim, block: Option<Block>) {
        let mut reports = ReportSet::NOBODY;
        let block = match mark.wrong {
            Some(Wrong::Untracked) => {
                self.summary.reported_untracked += mark.bytes;
                return;
            }
            // The mark is about the address; the block around it is worth knowing.
            Some(Wrong::Interior) => {
                let around = BLOCKS.enclosing(self.granule, mark.address);
                if around.is_some_and(|found| found.start == self.last.0) {
                    reports = self.last.1;
                }
                around.map(|found| found.block)
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
            self.summary.over_reported += mark.bytes;
        }
        let (address, claimed) = (mark.address, mark.bytes);
        let Some(report) = self.report_of(mark.claimant) else { return };
        let block = block.map(|block| WrongBlock {
            requested: block.requested,
            usable: block.usable,
            site: block.site,
            reports,
        });
        self.wrong.push(WrongReport { is, address, claimed, report, block });
    }

    /// What there is no memory to number is left out.
    fn reported(&mut self, set: ReportSet, report: Option<u32>) -> ReportSet {
        report.map_or(set, |report| self.kinds.with_report(set, report))
    }

    #[inline]
    fn report_of(&mut self, claimant: ClaimantId) -> Option<u32> {
        let known = self.by_claimant.as_slice().get(claimant.0 as usize).copied();
        known.unwrap_or(0).checked_sub(1).or_else(|| self.find_report_of(claimant))
    }

    #[cold]
    fn find_report_of(&mut self, claimant: ClaimantId) -> Option<u32> {
        let who = self.heard.claimants.who(claimant);
        let report = self.report_number(who.reporter, who.field)?;
        if let Some(place) = self.by_claimant.as_mut_slice().get_mut(claimant.0 as usize) {
            *place = report + 1;
        }
        Some(report)
    }

    fn report_number(&mut self, reporter: u32, field: Option<&'static Field>) -> Option<u32> {
        let address = field.map_or(0, |field| std::ptr::from_ref(field).addr());
        let number = self.reports.intern((reporter, address as u64))?;
        if number as usize == self.fields.as_slice().len() {
            self.fields.push(field);
        }
        Some(number)
    }

    /// ClaimBuffer and wrong reports that memory was short for.
    pub(crate) fn lost(&self) -> usize {
        self.wrong.lost
    }

    /// Who reports, by number, and what is wrong with whose reports. `reporters` are the collection's, from number 1.
    pub(crate) fn reports(&self, reporters: &[String]) -> (Vec<Report>, Vec<WrongReport>) {
        let path = |reporter: u32| {
            if reporter & ON_ALLOC != 0 {
                on_alloc_path(reporter & !ON_ALLOC).map(str::to_owned)
            } else {
                (reporter as usize).checked_sub(1).and_then(|index| reporters.get(index)).cloned()
            }
        };
        let numbered = self.reports.keys().iter().zip(self.fields.as_slice());
        let reports = numbered.map(|((reporter, _), field)| Report {
            path: path(*reporter).unwrap_or_default(),
            field: *field,
        });
        (reports.collect(), self.wrong.as_slice().to_vec())
    }
}

/// What the claims of a block come to.
#[derive(Clone, Copy, Default)]
struct Claims {
    count: usize,
    short: usize,
    over: usize,
}

impl Claims {
    fn add(&mut self, claimed: usize, usable: usize) {
        if self.count == 0 {
            self.short = usable.saturating_sub(claimed);
            self.over = claimed.saturating_sub(usable);
        } else {
            self.over += claimed;
        }
        self.count += 1;
    }
}

impl Estimate {
    /// A block of the sample, which stands for `weight` blocks.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn add(&mut self, bytes: usize, weight: f64) {
        let bytes = bytes as f64;
        self.blocks += weight;
        self.bytes += bytes * weight;
        // Horvitz and Thompson's estimate of the variance, for blocks that are drawn independently.
        self.variance += bytes * bytes * weight * (weight - 1.0);
    }
}
