//! The result of one collection: blocks, reports, and their sums.

use std::collections::BTreeMap;
use std::fs::File;
use std::time::Duration;

use memreport::__private::AttributedBy;
use memreport::Field;

use super::groups::{GroupKey, Groups, ReportSet};
use super::holders::Holders;
use super::holders::thread_stacks::ThreadStacks;
use super::scan::list::ScannedBlocks;
use super::summary::{Sampled, Sum, Summary};

use crate::mem::pages::PageList;
use crate::mem::sys::{self, Module};
use crate::sample::plan::{GapLimit, WholePlan};
use crate::sample::variable;
use crate::stack::site::{self, SiteId};
use crate::stack::thread::{self, RegisteredThread};
use crate::stack::walk;
use crate::stack::walk::tally::Tally;

/// The result of one collection. [`of`](Self::of) returns that of a snapshot.
///
/// A dump describes a moment. It contains each block that was allocated before the collection began
/// and is still live when it ends, exactly once. Blocks that other threads allocate or free
/// meanwhile are left out; reports of them are in [`Summary::reported_transient`]. In
/// [`Mode::Scan`](crate::Mode::Scan) the collection ends at one instant, and a copy of the heap of
/// that instant is read.
#[derive(Debug)]
pub struct Dump {
    /// The text of `$DMD`.
    pub(crate) variable: Option<String>,
    /// The plan at the beginning of the collection.
    pub(crate) plan: WholePlan,
    /// The moment of the snapshot, as the program named it.
    pub(crate) moment: String,
    pub(crate) uptime: Duration,
    pub(crate) summary: Summary,
    pub(crate) contents: Contents,
    pub(crate) modules: Vec<Module>,
    pub(crate) threads: Vec<ThreadInfo>,
    pub(crate) unwinder: &'static str,
    pub(crate) tally: Tally,
}

/// The blocks and reports of a dump.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) groups: Groups,
    /// The single blocks, in mode `scan`.
    pub(crate) scanned: Option<Scanned>,
    /// The reports, by number.
    pub(crate) reports: Vec<Report>,
    /// The usable bytes of unclaimed blocks that were attributed to a report.
    pub(crate) attributed: Vec<AttributedBytes>,
    /// Why blocks could not be attributed, in sentences.
    pub(crate) attribution_notes: Vec<String>,
    pub(crate) wrong: Vec<WrongReport>,
    /// Errors during the collection, as sentences.
    pub(crate) notes: Vec<String>,
    pub(crate) sampled: Option<Sampled>,
    /// The fields that reporters visited or skipped.
    pub(crate) fields: PageList<&'static Field>,
    pub(crate) holders: Holders,
    /// The stacks of threads, in mode `scan`.
    pub(crate) stacks: ThreadStacks,
    /// The bytes of the tracker's own tables.
    pub(crate) tracker_bytes: usize,
}

/// Usable bytes of unclaimed blocks that were attributed to a report.
#[derive(Debug)]
pub(crate) struct AttributedBytes {
    pub(crate) path: String,
    pub(crate) bytes: usize,
    pub(crate) by: AttributedBy,
}

/// The single blocks of a scan, and the file with their contents.
#[derive(Debug)]
pub(crate) struct Scanned {
    /// `None` if the contents are missing.
    pub(crate) file: Option<File>,
    pub(crate) blocks: ScannedBlocks,
}

impl Scanned {
    pub(super) const fn empty() -> Self {
        Scanned { file: None, blocks: ScannedBlocks::new() }
    }
}

/// A thread that has allocated.
#[derive(Clone, Debug)]
pub(crate) struct ThreadInfo {
    /// The tracker's number of the thread, from 1.
    pub(crate) number: u32,
    /// The kernel's number of the thread.
    pub(crate) id: u32,
    /// Its `pthread_t`.
    pub(crate) handle: usize,
    /// `None` if the thread has ended.
    pub(crate) name: Option<String>,
}

/// Live blocks that are alike, with their reports.
#[derive(Debug)]
pub(crate) struct Group<'d> {
    pub(crate) key: GroupKey,
    pub(crate) reports: Vec<&'d Report>,
    pub(crate) count: u64,
}

/// A reporter, and the field through which it reached a block.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) path: String,
    pub(crate) field: Option<&'static Field>,
}

/// A report that does not match a whole block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrongReport {
    pub(crate) kind: WrongKind,
    pub(crate) address: usize,
    /// The reported bytes.
    pub(crate) claimed: usize,
    /// The number of the report.
    pub(crate) report: u32,
    pub(crate) block: Option<WrongBlock>,
}

/// The block of a wrong report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrongBlock {
    pub(crate) requested: usize,
    pub(crate) usable: usize,
    pub(crate) site: SiteId,
    /// The reports of the block itself, if the wrong report points into it.
    pub(crate) reports: ReportSet,
}

/// The error of a wrong report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WrongKind {
    /// The address is not on the heap.
    NonHeap,
    /// The address is inside a block, not at its start.
    Interior,
    /// The size differs from the size of the block.
    Partial,
}

impl WrongKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            WrongKind::NonHeap => "non-heap",
            WrongKind::Interior => "interior",
            WrongKind::Partial => "partial",
        }
    }
}

/// Returns the threads that have allocated, with the names of live threads.
pub(crate) fn threads() -> Vec<ThreadInfo> {
    let info = |thread: RegisteredThread| ThreadInfo {
        number: thread.number,
        id: thread.system_id,
        handle: thread.handle,
        name: thread.name(),
    };
    thread::registered().map(info).collect()
}

impl Dump {
    pub(crate) fn new(plan: WholePlan, contents: Contents, summary: Summary, moment: &str) -> Self {
        Dump {
            variable: variable::text().map(str::to_owned),
            plan,
            moment: moment.to_owned(),
            uptime: sys::uptime(),
            summary,
            contents,
            modules: sys::modules(),
            threads: threads(),
            unwinder: walk::unwinder().name(),
            tally: walk::tally(),
        }
    }

    /// Returns the dump of a snapshot; `None` if DMD was asleep.
    #[must_use]
    pub fn of(snapshot: &memreport::Snapshot) -> Option<&Dump> {
        snapshot.findings()?.downcast_ref()
    }

    /// Returns the live blocks from before tracking began or while it was off. Of a profile, an
    /// estimate.
    pub(crate) fn untracked(&self) -> Sum {
        match self.contents.sampled {
            Some(sampled) => before_tracking(self.summary, sampled, self.plan.gap_limit),
            None => self.summary.untracked,
        }
    }

    /// Returns the sums of the collection.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// Returns the estimates of a profile; `None` in other modes than
    /// [`Mode::Profile`](crate::Mode::Profile).
    #[must_use]
    pub fn sampled(&self) -> Option<Sampled> {
        self.contents.sampled
    }

    /// Returns a sentence for each report that does not match a whole block: the reporter and the
    /// error.
    #[must_use]
    pub fn wrong_reports(&self) -> Vec<String> {
        self.contents.wrong.iter().map(|wrong| self.describe(wrong)).collect()
    }

    fn describe(&self, wrong: &WrongReport) -> String {
        let reporter = self.report(wrong.report).map_or_else(String::new, Report::describe);
        let claimed = wrong.claimed;
        match wrong.kind {
            WrongKind::NonHeap => {
                format!("{reporter} reports {claimed} bytes that are not on the heap")
            }
            WrongKind::Interior => {
                format!("{reporter} reports {claimed} bytes inside a block, not at its start")
            }
            WrongKind::Partial => {
                let usable = wrong.block.map_or(0, |block| block.usable);
                if claimed == usable {
                    return format!(
                        "{reporter} passes another size than the block's {usable} bytes"
                    );
                }
                format!("{reporter} reports {claimed} bytes of a block that has {usable}")
            }
        }
    }

    /// Returns the live blocks by requested size, in bytes.
    #[must_use]
    pub fn by_requested_size(&self) -> BTreeMap<usize, Sum> {
        let mut sizes = BTreeMap::<usize, Sum>::new();
        for (key, count) in self.contents.groups.iter().filter(|(key, _)| !key.is_freed) {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            let sum = sizes.entry(key.requested).or_default();
            *sum = sum.and(Sum { blocks: count, bytes: count * key.usable });
        }
        sizes
    }

    /// Iterates over the groups of live blocks.
    pub(crate) fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        let Contents { groups, reports, .. } = &self.contents;
        let live = groups.iter().filter(|(key, _)| !key.is_freed);
        live.map(|(key, count)| {
            let numbers = groups.reports(key.reports);
            let reports = numbers.filter_map(|number| reports.get(number as usize)).collect();
            Group { key: *key, reports, count }
        })
    }

    pub(crate) fn report(&self, number: u32) -> Option<&Report> {
        self.contents.reports.get(number as usize)
    }

    /// Returns the number of a site's stack; `None` if no stack was taken.
    pub(crate) fn stack(site: SiteId) -> Option<u32> {
        site::site(site).map(|site| site.stack).filter(|stack| *stack != 0)
    }
}

/// Estimates the live blocks of a profile from before it began, or from while it was off.
///
/// That is the part of the heap beyond the estimate of sampled blocks, limited to the heap at the
/// end of the last gap.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate, and the conversion saturates"
)]
fn before_tracking(summary: Summary, sampled: Sampled, limit: GapLimit) -> Sum {
    let beyond = |all: usize, estimate: f64, limit: u64| {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        all.saturating_sub(estimate.round() as usize).min(limit)
    };
    // The untracked blocks include the unsampled ones, so these are all blocks.
    let tracked = summary.unreported.and(summary.once).and(summary.twice);
    let blocks = tracked.blocks.saturating_add(summary.untracked.blocks);
    Sum {
        bytes: beyond(summary.heap_allocated, sampled.all.bytes, limit.bytes),
        blocks: beyond(blocks, sampled.all.blocks, limit.blocks),
    }
}

impl Report {
    /// Returns the path, with the field if one is known.
    pub(crate) fn describe(&self) -> String {
        match self.field {
            None => self.path.clone(),
            Some(field) => format!("{} through {field:?}", self.path),
        }
    }
}
