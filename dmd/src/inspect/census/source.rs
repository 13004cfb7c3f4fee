//! The blocks of a collection in this process, as a source of census items.

use std::collections::HashMap;
use std::sync::Arc;

use memreport::__private::all_scopes;
use memreport_analysis::census::engine::{Attributes, Item, distinct, owned_by, thread_text};
use memreport_analysis::census::{Amount, BlockSize, ReportState, StackCut};

use crate::collect::Dump;
use crate::collect::age::Age;
use crate::collect::findings::Report;
use crate::collect::groups::ReportSet;
use crate::dump::modules::ModuleMap;
use crate::observe::scope_names;
use crate::sample::options::Mode;
use crate::sample::rate::SamplingRate;
use crate::stack::site::{self, SiteId};

/// The properties of a group of blocks, or of a single block.
#[derive(Clone, Copy)]
pub(super) struct BlockProperties {
    pub(super) requested: usize,
    pub(super) usable: usize,
    pub(super) site: SiteId,
    pub(super) rate: SamplingRate,
    pub(super) reports: ReportSet,
    pub(super) age: Age,
}

/// A set of reports and its number.
#[derive(Clone, Copy)]
struct NumberedSet {
    set: ReportSet,
    number: u32,
}

/// Numbers for sets of reports, from 1; 0 is the empty set.
#[derive(Default)]
struct ReportNumbers {
    /// A cache of the last set.
    last: Option<NumberedSet>,
    numbers: HashMap<Box<[u32]>, u32>,
    sets: Vec<Box<[u32]>>,
}

impl ReportNumbers {
    /// Returns the number of a set.
    fn number(&mut self, dump: &Dump, set: ReportSet) -> u32 {
        if set == ReportSet::NONE {
            return 0;
        }
        let number = match self.last {
            // Neighbouring blocks mostly have the same reports.
            Some(last) if last.set == set => last.number,
            _ => {
                let reports: Box<[u32]> = dump.contents.groups.reports(set).collect();
                let next = u32::try_from(self.sets.len() + 1).unwrap_or(u32::MAX);
                let sets = &mut self.sets;
                *self.numbers.entry(reports).or_insert_with_key(|reports| {
                    sets.push(reports.clone());
                    next
                })
            }
        };
        self.last = Some(NumberedSet { set, number });
        number
    }

    /// Returns the reports of a set by its number.
    fn get(&self, number: u32) -> &[u32] {
        let set = (number as usize).checked_sub(1).and_then(|at| self.sets.get(at));
        set.map_or(&[], |set| set)
    }
}

/// A source of census items: resolves the numbers of a dump in this program.
pub(super) struct LiveSource<'d> {
    dump: &'d Dump,
    modules: ModuleMap<'d>,
    reports: ReportNumbers,
    frames: HashMap<usize, Arc<str>>,
    scopes: Vec<(u16, String)>,
}

impl<'d> LiveSource<'d> {
    pub(super) fn new(dump: &'d Dump) -> Self {
        LiveSource {
            dump,
            modules: ModuleMap::new(&dump.modules),
            reports: ReportNumbers::default(),
            frames: HashMap::new(),
            scopes: all_scopes(),
        }
    }

    /// Returns the item of `count` blocks.
    pub(super) fn item(&mut self, properties: BlockProperties, count: u64) -> Item {
        let BlockProperties { requested, usable, site, rate, reports, age } = properties;
        let (size, slop) = (usable as u64, (usable - requested) as u64);
        let block_size = BlockSize { requested: requested as u64, slop };
        // Collections record reports in all modes, but dumps of other modes do not contain them.
        let mode = self.dump.plan.mode;
        let (reports, state) = if mode.has_reports() || mode == Mode::Scan {
            let number = self.reports.number(self.dump, reports);
            (number, ReportState::of_reports(self.reports.get(number).len()))
        } else {
            (0, ReportState::Other)
        };
        let site = site::site(site);
        Item {
            amount: Amount::new(count, block_size, rate.weight(usable)),
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

    /// Returns the reports of an item.
    fn reports(&self, item: &Item) -> impl Iterator<Item = &Report> {
        let (dump, set) = (self.dump, self.reports.get(item.reports));
        set.iter().filter_map(|number| dump.report(*number))
    }
}

impl Attributes for LiveSource<'_> {
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
        let threads = &self.dump.threads;
        let thread = threads.iter().find(|thread| thread.number == item.thread);
        Some(thread_text(thread.and_then(|thread| thread.name.as_deref()), item.thread))
    }

    /// Returns the type that reports the block: frames are addresses, which contain no types.
    fn type_name(&mut self, item: &Item) -> Option<String> {
        self.reports(item).find_map(|report| Some(owned_by(report.field?.owner())))
    }

    fn stack(&mut self, item: &Item, cut: StackCut) -> Option<Arc<[Arc<str>]>> {
        let addresses = cut.apply(site::frames(item.stack).collect());
        let modules = &self.modules;
        let frames: Arc<[Arc<str>]> = addresses
            .into_iter()
            .map(|address: usize| {
                let frame = self.frames.entry(address);
                Arc::clone(frame.or_insert_with(|| modules.describe(address).into()))
            })
            .collect();
        (!frames.is_empty()).then_some(frames)
    }
}
