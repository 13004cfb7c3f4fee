//! Censuses of dumps that were read from files, whose frames should have been looked up.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use super::breakdown::{Axis, Breakdown};
use super::count::Counting;
use super::item::{Amount, Item, Source, State};
use super::keys::{fields, named_thread, owned_by, reporters};
use super::node::{Census, Key};
use crate::analysis::{
    self, BlockType, Class, Parts, Style, report_names, without_allocator, without_library,
};
use crate::heap::Frames;
use crate::read::{self, Block, Dump, ReportSite, TraceId};

/// How a file is counted.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct FileOptions {
    /// Which frames stacks have.
    pub frames: Frames,
    /// The program's directory, left out of its paths.
    pub root: Option<String>,
}

/// Counts the live blocks of a dump.
///
/// # Examples
///
/// ```
/// ///
/// let dump = memreport_analysis::read::read_slice(
///     br##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "dark-matter"},
///          "blockList": [{"req": 100, "slop": 12, "num": 2}, {"req": 8, "slop": 8, "reps": ["R"]}],
///          "traceTable": {"R": ["r"]}, "frameTable": {"r": "#00: explicit/words"}}"##,
/// )?;
/// let breakdown: Breakdown = r#"{"by":"coarseType"}"#.parse()?;
/// let mut json = Vec::new();
/// of_dump(&dump, &breakdown, &FileOptions::default()).write_json(&mut json)?;
/// let dark = r#"{"unreported":{"count":2,"bytes":224},"once":{"count":1,"bytes":16},"#;
/// assert!(json.starts_with(dark.as_bytes()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn of_dump(dump: &Dump, breakdown: &Breakdown, options: &FileOptions) -> Census {
    let mut source = File::new(dump, options);
    let mut counting = Counting::new(breakdown);
    // A block that was given back is counted by nobody.
    for block in dump.blocks.iter().filter(|block| !block.freed) {
        let item = source.item(block);
        counting.add(&item, &mut source);
    }
    let is_sampled = dump.extension.as_ref().is_some_and(|ours| ours.sampled.is_some());
    counting.into_census(is_sampled, dump.notes.clone())
}

/// What numbers stand for in a dump.
struct File<'d> {
    dump: &'d Dump,
    mode: read::Mode,
    which: Frames,
    style: Style<'d>,
    /// Who reports, by numbers from 1 on; a block that they report.
    reports: HashMap<&'d [TraceId], u32>,
    reported: Vec<&'d Block>,
    texts: HashMap<String, Arc<str>>,
}

impl<'d> File<'d> {
    fn new(dump: &'d Dump, options: &'d FileOptions) -> Self {
        File {
            dump,
            mode: analysis::mode(dump),
            which: options.frames,
            style: Style { root: options.root.as_deref(), width: 0 },
            reports: HashMap::new(),
            reported: Vec::new(),
            texts: HashMap::new(),
        }
    }

    fn item(&mut self, block: &'d Block) -> Item {
        let reports = self.dump.reports(block);
        let state = match analysis::class(self.mode, reports) {
            Class::Unreported => State::Unreported,
            Class::OnceReported => State::Once,
            Class::TwiceReported => State::Twice,
            _ => State::Other,
        };
        Item {
            amount: Amount::new(block.num, (block.req, block.slop), block.weight),
            size: block.usable(),
            slop: block.slop,
            state,
            stack: block.alloc.map_or(0, |trace| number(trace.index())),
            // Numbers of threads count from 0 in some dumps.
            thread: block.thread.map_or(0, |thread| thread.saturating_add(1)),
            scope: block.scope,
            reports: reports.map_or(0, |reports| self.reports_number(reports, block)),
            age_ms: block.age_ms,
            address: block.addr.map(std::num::NonZeroU64::get),
        }
    }

    fn reports_number(&mut self, reports: &'d [TraceId], block: &'d Block) -> u32 {
        let reported = &mut self.reported;
        *self.reports.entry(reports).or_insert_with(|| {
            reported.push(block);
            number(reported.len() - 1)
        })
    }

    fn names(&self, item: &Item, describe: impl Fn(&ReportSite) -> String) -> Vec<String> {
        let block = (item.reports as usize).checked_sub(1).and_then(|at| self.reported.get(at));
        block.and_then(|block| report_names(self.dump, block, describe)).unwrap_or_default()
    }

    fn trace(&self, item: &Item) -> Option<TraceId> {
        item.stack.checked_sub(1).map(TraceId)
    }

    /// The frames of an item's stack, without the standard library's.
    fn own(&self, item: &Item) -> Vec<Parts<'d>> {
        self.trace(item)
            .map_or_else(Vec::new, |trace| without_library(self.dump, self.dump.trace(trace)))
    }

    fn stack(&mut self, item: &Item, depth: Option<NonZeroU32>, is_inverted: bool) -> Option<Key> {
        let trace = self.dump.trace(self.trace(item)?);
        let mut parts = match self.which {
            Frames::All => without_allocator(self.dump, trace),
            Frames::Own => without_library(self.dump, trace),
        };
        if is_inverted {
            parts.reverse();
        }
        parts.truncate(depth.map_or(usize::MAX, |depth| depth.get() as usize));
        let frames: Arc<[Arc<str>]> = parts
            .iter()
            .map(|parts| {
                let text = self.style.frame(parts, 0);
                let known = self.texts.entry(text);
                Arc::clone(known.or_insert_with_key(|text| text.as_str().into()))
            })
            .collect();
        (!frames.is_empty()).then_some(Key::Stack(frames))
    }

    fn type_name(&self, item: &Item) -> Option<Key> {
        let trace = self.trace(item).map(|trace| self.dump.trace(trace));
        if let Some(BlockType::Known(name)) =
            trace.map(|trace| BlockType::of_trace(self.dump, trace))
        {
            return Some(Key::text(&name));
        }
        let owners = self.names(item, |site| site.type_name.clone().unwrap_or_default());
        // A native report stack says the same, whatever is asked of it.
        let has_sites = self.dump.extension.is_some();
        owned_by(owners.iter().map(String::as_str).find(|name| has_sites && !name.is_empty()))
    }
}

/// From 1 on.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1)
}

impl Source for File<'_> {
    fn key(&mut self, axis: &Axis, item: &Item) -> Option<Key> {
        match axis {
            Axis::AllocationStack { depth, invert } => self.stack(item, *depth, *invert),
            Axis::Type => self.type_name(item),
            Axis::Filename => {
                let own = self.own(item);
                let file = own.iter().find(|parts| parts.is_own())?.file?;
                Some(Key::text(self.style.file(file)))
            }
            Axis::Crate => self.own(item).first()?.crate_name().map(Key::text),
            Axis::Reporter { depth } => {
                let paths = self.names(item, |site| site.path.clone());
                reporters(paths.iter().map(String::as_str), depth.map(NonZeroU32::get))
            }
            Axis::Field => fields(
                self.names(item, |site| match (&site.type_name, &site.field) {
                    (Some(name), Some(field)) => format!("{name}.{field}"),
                    (Some(name), None) => name.clone(),
                    _ => site.path.clone(),
                })
                .into_iter(),
            ),
            Axis::Thread => {
                let id = item.thread.checked_sub(1)?;
                let mut threads = self.dump.extension.iter().flat_map(|ours| &ours.threads);
                let thread = threads.find(|thread| thread.id == id);
                Some(named_thread(thread.and_then(|thread| thread.name.as_deref()), id))
            }
            Axis::Scope => {
                let names = self.dump.extension.as_ref()?.scope_names(item.scope);
                (!names.is_empty()).then(|| Key::text(&names.join(" > ")))
            }
            _ => None,
        }
    }
}
