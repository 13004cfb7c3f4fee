//! Censuses of the running program, without a file: from the blocks of one collection to numbers.

use std::collections::HashMap;
use std::sync::Arc;

use memreport::__private::{all_scopes, as_own};
use memreport::Collector;
use memreport_analysis::census::engine::{
    Attributes, Counting, Item, distinct, owned_by, thread_text,
};
use memreport_analysis::census::{Amount, BlockSize, Breakdown, Census, ReportState, StackCut};

use crate::collect::Dump;
use crate::collect::age::Age;
use crate::collect::balance::{Kind, ReportSet};
use crate::collect::findings::{Report, ScannedBlock};
use crate::collect::holders;
use crate::dump::write::Places;
use crate::sample::options::Mode;
use crate::sample::rate::SamplingRate;
use crate::stack::site;
use crate::stack::site::SiteId;
use crate::table::packed_block::Block;

/// Counts what lives in this program, by a collection of its own; `None` while DMD sleeps.
///
/// The program goes on meanwhile. Frames are addresses, `???[/usr/bin/program +0x12]`, the allocator's own first, since looking up
/// functions takes seconds and memory. So files and crates are unknown, and types are those of the reporters.
/// `dmd::census::take_symbolised` looks up.
///
/// # Panics
///
/// When a reporter calls it: collections do not nest.
///
/// # Examples
///
/// ```
/// use dmd::census::{Axis, Split};
///
/// dmd::global_allocator!();
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// dmd::start("--mode=live".parse()?)?;
/// let words: Vec<String> = (0..1000).map(|number| format!("word {number}")).collect();
/// let census = dmd::take_census(&Split::by(Axis::Thread).into()).ok_or("DMD sleeps")?;
/// assert!(census.root().amount.count > 1000);
/// # drop(words);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn take_census(breakdown: &Breakdown) -> Option<Census> {
    let collector = Collector::default().quick().moment("asked for a census");
    // No breakdown asks who holds dark blocks.
    let snapshot = holders::unwanted(|| collector.snapshot());
    Dump::of(&snapshot).map(|dump| dump.census(breakdown))
}

impl Dump {
    /// Counts the live blocks of this collection. What is counted is marked as the tracker's own: no other collection has it.
    #[must_use]
    pub fn census(&self, breakdown: &Breakdown) -> Census {
        as_own(|| {
            let contents = self.contents();
            let mut source = Live::new(self);
            let mut counting = Counting::new(breakdown);
            match &contents.scanned {
                Some(scanned) => {
                    for scanned in scanned.blocks.as_slice() {
                        let ScannedBlock { address, block, reports, age, .. } = scanned;
                        let Block { requested, usable, site, rate, .. } = *block;
                        let (reports, age) = (*reports, *age);
                        let alike = Alike { requested, usable, site, rate, reports, age };
                        let address = Some(*address as u64);
                        let item = Item { address, ..source.item(alike, 1) };
                        counting.add(&item, &mut source);
                    }
                }
                None => {
                    for (kind, num) in contents.kinds.iter().filter(|(kind, _)| !kind.is_freed) {
                        let Kind { requested, usable, site, rate, reports, age, .. } = *kind;
                        let item =
                            source.item(Alike { requested, usable, site, rate, reports, age }, num);
                        counting.add(&item, &mut source);
                    }
                }
            }
            counting.into_census(contents.sampled.is_some(), contents.notes.clone())
        })
    }
}

/// What blocks have in common, and single ones have as well.
#[derive(Clone, Copy)]
struct Alike {
    requested: usize,
    usable: usize,
    site: SiteId,
    rate: SamplingRate,
    reports: ReportSet,
    age: Age,
}

/// Who reports, by numbers from 1 on; 0 is nobody.
#[derive(Default)]
struct ReportNumbers {
    /// The set before, and its number.
    last: Option<(ReportSet, u32)>,
    numbers: HashMap<Box<[u32]>, u32>,
    sets: Vec<Box<[u32]>>,
}

impl ReportNumbers {
    /// The number of a set, and how many reports there are in it.
    fn number(&mut self, dump: &Dump, set: ReportSet) -> (u32, usize) {
        if set == ReportSet::NOBODY {
            return (0, 0);
        }
        let number = match self.last {
            // Neighbours mostly have the same.
            Some((last, number)) if last == set => number,
            _ => {
                let reports: Box<[u32]> = dump.contents().kinds.reports(set).collect();
                let next = u32::try_from(self.sets.len() + 1).unwrap_or(u32::MAX);
                let sets = &mut self.sets;
                *self.numbers.entry(reports).or_insert_with_key(|reports| {
                    sets.push(reports.clone());
                    next
                })
            }
        };
        self.last = Some((set, number));
        (number, self.get(number).len())
    }

    fn get(&self, number: u32) -> &[u32] {
        let set = (number as usize).checked_sub(1).and_then(|at| self.sets.get(at));
        set.map_or(&[], |set| set)
    }
}

/// What numbers stand for in this program.
struct Live<'d> {
    dump: &'d Dump,
    places: Places<'d>,
    reports: ReportNumbers,
    frames: HashMap<usize, Arc<str>>,
    scopes: Vec<(u16, String)>,
}

impl<'d> Live<'d> {
    fn new(dump: &'d Dump) -> Self {
        Live {
            dump,
            places: Places::new(dump.modules()),
            reports: ReportNumbers::default(),
            frames: HashMap::new(),
            scopes: all_scopes(),
        }
    }

    fn item(&mut self, alike: Alike, num: u64) -> Item {
        let Alike { requested, usable, site, rate, reports, age } = alike;
        let (size, slop) = (usable as u64, (usable - requested) as u64);
        let block_size = BlockSize { requested: requested as u64, slop };
        // In other modes reports are heard as well, and the dump does not say them.
        let mode = self.dump.mode();
        let (reports, state) = if mode.has_reports() || mode == Mode::Scan {
            let (reports, times) = self.reports.number(self.dump, reports);
            (reports, ReportState::of_reports(times))
        } else {
            (0, ReportState::Other)
        };
        let site = site::site(site);
        Item {
            amount: Amount::new(num, block_size, rate.weight(usable)),
            size,
            slop,
            state,
            stack: site.map_or(0, |site| site.stack),
            thread: site.map_or(0, |site| site.thread),
            scope: site.map_or(0, |site| site.scope),
            reports,
            age_ms: age.milliseconds(),
            address: None,
        }
    }

    fn reports(&self, item: &Item) -> impl Iterator<Item = &Report> {
        let (dump, set) = (self.dump, self.reports.get(item.reports));
        set.iter().filter_map(|number| dump.report(*number))
    }
}

impl Attributes for Live<'_> {
    type Block = Item;

    fn size(&self, item: &Item) -> u64 {
        item.size
    }

    fn state(&self, item: &Item) -> ReportState {
        item.state
    }

    fn age_ms(&self, item: &Item) -> Option<u64> {
        item.age_ms
    }

    fn reporters(&mut self, item: &Item) -> Vec<String> {
        distinct(self.reports(item).map(|report| report.path.clone()).collect())
    }

    fn fields(&mut self, item: &Item) -> Vec<String> {
        let name = |report: &Report| {
            let field = report.field.map(|field| format!("{}.{}", field.owner(), field.name()));
            field.unwrap_or_else(|| report.path.clone())
        };
        distinct(self.reports(item).map(name).collect())
    }

    fn scopes(&mut self, item: &Item) -> Vec<String> {
        scope_names(&self.scopes, item.scope)
    }

    fn thread(&mut self, item: &Item) -> Option<String> {
        if item.thread == 0 {
            return None;
        }
        let threads = self.dump.threads();
        let thread = threads.iter().find(|(number, ..)| *number == item.thread);
        Some(thread_text(thread.and_then(|(.., name)| name.as_deref()), item.thread))
    }

    /// Returns the type that reports the block: frames are addresses, which contain no types.
    fn type_name(&mut self, item: &Item) -> Option<String> {
        self.reports(item).find_map(|report| Some(owned_by(report.field?.owner())))
    }

    fn stack(&mut self, item: &Item, cut: StackCut) -> Option<Arc<[Arc<str>]>> {
        let addresses = cut.apply(site::frames(item.stack).collect());
        let places = &self.places;
        let frames: Arc<[Arc<str>]> = addresses
            .into_iter()
            .map(|address: usize| {
                let frame = self.frames.entry(address);
                Arc::clone(frame.or_insert_with(|| places.describe(address).into()))
            })
            .collect();
        (!frames.is_empty()).then_some(frames)
    }
}

/// Returns the names from the outermost scope to this one.
fn scope_names(scopes: &[(u16, String)], scope: u16) -> Vec<String> {
    let mut names = Vec::new();
    let mut next = usize::from(scope);
    while let Some((around, name)) = next.checked_sub(1).and_then(|at| scopes.get(at)) {
        names.push(name.clone());
        // Each is named before those inside it.
        next = usize::from(*around).min(next - 1);
    }
    names.reverse();
    names
}
