//! What one collection found: blocks, reports, and their sums.

use std::collections::BTreeMap;
use std::fs::File;
use std::time::Duration;

use memreport::Field;

use super::age::Age;
use super::balance::{Kind, Kinds, ReportSet};
use super::holders::{HolderId, Holders};
use super::scan::Place;
use super::summary::{Sampled, Sum, Summary};
use crate::mem::pages::PageList;
use crate::mem::sys::{self, Module};
use crate::sample::options::Mode;
use crate::sample::{plan, variable};
use crate::stack::site::{self, SiteId};
use crate::stack::walk::tally::Tally;
use crate::stack::{thread, walk};
use crate::table::packed_block::Block;

/// What DMD found in one collection. [`of`](Self::of) gets it from a snapshot.
///
/// The collection is a moment: blocks that were born before it began and live when it ends are in the dump, exactly once
/// each. Those that other threads make or give back meanwhile are left out, and what was reported of them is listed as freed
/// since. Under [`Mode::Scan`] it ends at one instant, of which a copy of the heap is read.
#[derive(Debug)]
pub struct Dump {
    pub(crate) variable: Option<String>,
    pub(crate) mode: Mode,
    pub(crate) moment: String,
    pub(crate) uptime: Duration,
    pub(crate) summary: Summary,
    pub(crate) contents: Contents,
    pub(crate) modules: Vec<Module>,
    /// Number, kernel's number, name of those that live.
    pub(crate) threads: Vec<(u32, u32, Option<String>)>,
    pub(crate) unwinder: &'static str,
    /// New blocks get the time at which they are made.
    pub(crate) has_times: bool,
    pub(crate) tally: Tally,
}

/// The blocks, and what is said of them.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) kinds: Kinds,
    /// The blocks one by one.
    pub(crate) scanned: Option<Scanned>,
    /// Who reports, by number.
    pub(crate) reports: Vec<Report>,
    pub(crate) wrong: Vec<WrongReport>,
    /// What went wrong, as sentences.
    pub(crate) notes: Vec<String>,
    pub(crate) sampled: Option<Sampled>,
    /// The fields that were visited or skipped.
    pub(crate) fields: PageList<&'static Field>,
    pub(crate) holders: Holders,
    /// What the tracker's own tables take.
    pub(crate) tracker_bytes: usize,
}

/// Blocks with their addresses, and the file that has what was in them.
#[derive(Debug)]
pub(crate) struct Scanned {
    /// `None` if the contents are missing.
    pub(crate) file: Option<File>,
    pub(crate) blocks: PageList<ScannedBlock>,
}

/// A block of a scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScannedBlock {
    pub(crate) address: usize,
    pub(crate) block: Block,
    pub(crate) reports: ReportSet,
    pub(crate) holder: HolderId,
    pub(crate) age: Age,
    pub(crate) contents: Option<Place>,
}

/// Live blocks that are alike.
#[derive(Debug)]
pub(crate) struct Group<'d> {
    pub(crate) kind: Kind,
    pub(crate) reports: Vec<&'d Report>,
    pub(crate) count: u64,
}

/// Who reports: a reporter, and the field through which it came to the block.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) path: String,
    pub(crate) field: Option<&'static Field>,
}

/// A report that is no block's, or not all of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrongReport {
    pub(crate) is: WrongIs,
    pub(crate) address: usize,
    pub(crate) claimed: usize,
    /// The number of the report.
    pub(crate) report: u32,
    pub(crate) block: Option<WrongBlock>,
}

/// The block that a wrong report is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrongBlock {
    pub(crate) requested: usize,
    pub(crate) usable: usize,
    pub(crate) site: SiteId,
    /// Of a report that points into the block: who reports the block itself.
    pub(crate) reports: ReportSet,
}

/// What is wrong with a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WrongIs {
    NonHeap,
    Interior,
    Partial,
    FreedSince,
}

impl WrongIs {
    pub(crate) fn name(self) -> &'static str {
        match self {
            WrongIs::NonHeap => "non-heap",
            WrongIs::Interior => "interior",
            WrongIs::Partial => "partial",
            WrongIs::FreedSince => "freed-since",
        }
    }
}

impl Dump {
    pub(crate) fn new(contents: Contents, summary: Summary, moment: &str) -> Self {
        Dump {
            variable: variable::text().map(str::to_owned),
            mode: plan::mode(),
            moment: moment.to_owned(),
            uptime: sys::uptime(),
            summary,
            contents,
            modules: sys::modules(),
            threads: thread::registered()
                .map(|thread| (thread.number, thread.system_id, sys::thread_name(thread.system_id)))
                .collect(),
            unwinder: walk::unwinder().name(),
            has_times: plan::plan().keeps_times(),
            tally: walk::tally(),
        }
    }

    /// What DMD found when this snapshot was taken; `None` if it slept.
    #[must_use]
    pub fn of(snapshot: &memreport::Snapshot) -> Option<&Dump> {
        snapshot.findings()?.downcast_ref()
    }

    /// The books.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// Under [`Mode::Profile`], what the sample says of all blocks.
    #[must_use]
    pub fn sampled(&self) -> Option<Sampled> {
        self.contents.sampled
    }

    /// Reports that are no block's, or not all of it: what is wrong, and with whose report, as a sentence each.
    #[must_use]
    pub fn wrong_reports(&self) -> Vec<String> {
        self.contents.wrong.iter().map(|wrong| self.describe(wrong)).collect()
    }

    fn describe(&self, wrong: &WrongReport) -> String {
        let reporter = self.report(wrong.report).map_or_else(String::new, Report::describe);
        let claimed = wrong.claimed;
        match wrong.is {
            WrongIs::NonHeap => {
                format!("{reporter} reports {claimed} bytes that are not on the heap")
            }
            WrongIs::Interior => {
                format!("{reporter} reports {claimed} bytes inside a block, not at its start")
            }
            WrongIs::FreedSince => {
                format!("{reporter} reports {claimed} bytes of a block that was freed since")
            }
            WrongIs::Partial => {
                let usable = wrong.block.map_or(0, |block| block.usable);
                format!("{reporter} reports {claimed} bytes of a block that has {usable}")
            }
        }
    }

    /// The live blocks by the bytes that were asked for.
    #[must_use]
    pub fn by_requested_size(&self) -> BTreeMap<usize, Sum> {
        let mut sizes = BTreeMap::<usize, Sum>::new();
        for (kind, count) in self.contents.kinds.iter().filter(|(kind, _)| !kind.is_freed) {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            let sum = sizes.entry(kind.requested).or_default();
            *sum = sum.and(Sum { blocks: count, bytes: count * kind.usable });
        }
        sizes
    }

    /// Live blocks that are alike, who reports them, and how many they are.
    pub(crate) fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        let Contents { kinds, reports, .. } = &self.contents;
        let live = kinds.iter().filter(|(kind, _)| !kind.is_freed);
        live.map(|(kind, count)| {
            let numbers = kinds.reports(kind.reports);
            let reports = numbers.filter_map(|number| reports.get(number as usize)).collect();
            Group { kind: *kind, reports, count }
        })
    }

    pub(crate) fn report(&self, number: u32) -> Option<&Report> {
        self.contents.reports.get(number as usize)
    }

    /// What was recorded.
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) fn contents(&self) -> &Contents {
        &self.contents
    }

    pub(crate) fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// Number, kernel's number and name of threads.
    pub(crate) fn threads(&self) -> &[(u32, u32, Option<String>)] {
        &self.threads
    }

    pub(crate) fn stack(site: SiteId) -> Option<u32> {
        site::site(site).map(|site| site.stack).filter(|stack| *stack != 0)
    }
}

impl Report {
    /// The path, and the field if one is known.
    pub(crate) fn describe(&self) -> String {
        match self.field {
            None => self.path.clone(),
            Some(field) => format!("{} through {field:?}", self.path),
        }
    }
}
