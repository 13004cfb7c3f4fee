//! Censuses of dump files, whose frames should be symbolicated.

mod columns;

pub use columns::columns;

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::amount::{Amount, BlockSize};
use super::breakdown::Breakdown;
use super::count::Counting;
use super::item::{Item, owned_by};
use super::node::Census;
use crate::analysis::{
    self, BlockType, ClampError, Crates, Parts, Style, field_name, report_names, thread_name,
    without_allocator, without_library,
};
use crate::axis::{Attributes, ReportState, StackCut, distinct};
use crate::heap::Frames;
use crate::read::{self, Block, Dump, ReportSite, Sum, TraceId};
use crate::retention::reachable_blocks;

/// Options for the census of a file.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct FileOptions {
    /// The frames that stacks consist of.
    pub frames: Frames,
    /// The program's directory, which is left out of its paths.
    pub root: Option<String>,
}

/// Counts the live blocks of a dump.
///
/// # Examples
///
/// ```
/// use memreport_analysis::census::{Breakdown, FileOptions, of_dump};
///
/// let dump = memreport_analysis::read::read_slice(
///     br##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "dark-matter"},
///          "blockList": [{"req": 100, "slop": 12, "num": 2},
///                        {"req": 8, "slop": 8, "reps": ["R"]}],
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
    // A census counts live blocks only.
    let live = dump.blocks.iter().filter(|block| !block.kind.freed);
    let mut census = count(dump, live, breakdown, options);
    if let Some(ours) = &dump.extension {
        census.add_untracked(ours.untracked.blocks, ours.untracked.bytes);
    }
    census
}

/// A census of the blocks of a scan that are reachable.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReachableCensus {
    /// The census. Blocks from before tracking are not in it: their holders are unknown.
    pub census: Census,
    /// The blocks that no root reaches. They are not in the census.
    pub unreachable: Sum,
}

/// Counts the blocks of a scan that a static, a reporter or a skipped field reaches, as
/// [`reachable_blocks`] finds them.
///
/// SpiderMonkey's `takeCensus` counts reachable things only.
///
/// # Errors
///
/// If the dump is not a scan, or if it is damaged.
pub fn of_reachable(
    dump: &Dump,
    breakdown: &Breakdown,
    options: &FileOptions,
) -> Result<ReachableCensus, ClampError> {
    let reached = reachable_blocks(dump)?;
    let blocks = || dump.blocks.iter().zip(&reached).filter(|(block, _)| !block.kind.freed);
    let chosen = blocks().filter(|(_, reached)| **reached).map(|(block, _)| block);
    let census = count(dump, chosen, breakdown, options);
    let mut unreachable = Sum::default();
    for (block, _) in blocks().filter(|(_, reached)| !**reached) {
        unreachable.blocks = unreachable.blocks.saturating_add(block.num);
        let bytes = block.usable().saturating_mul(block.num);
        unreachable.bytes = unreachable.bytes.saturating_add(bytes);
    }
    Ok(ReachableCensus { census, unreachable })
}

fn count<'d>(
    dump: &'d Dump,
    blocks: impl Iterator<Item = Block<'d>>,
    breakdown: &Breakdown,
    options: &'d FileOptions,
) -> Census {
    let mut source = File::new(dump, options);
    let mut counting = Counting::new(breakdown);
    for block in blocks {
        let item = source.item(&block);
        counting.add(&item, &mut source);
    }
    let is_sampled = dump.extension.as_ref().is_some_and(|ours| ours.sampled.is_some());
    counting.into_census(is_sampled, dump.notes.clone())
}

/// A dump as a source of items.
struct File<'d> {
    dump: &'d Dump,
    mode: read::Mode,
    which: Frames,
    style: Style<'d>,
    /// The numbers of lists of reports, from 1 on.
    reports: HashMap<&'d [TraceId], u32>,
    /// A block with each list of reports.
    reported: Vec<Block<'d>>,
    texts: HashMap<String, Arc<str>>,
    crates: Crates<'d>,
    /// The stack that was looked at last: several axes look at the same one in turn.
    last: Option<OwnFrames<'d>>,
}

/// A stack with its frames, without the standard library's.
struct OwnFrames<'d> {
    trace: TraceId,
    frames: Rc<[Parts<'d>]>,
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
            crates: Crates::new(dump),
            last: None,
        }
    }

    fn item(&mut self, block: &Block<'d>) -> Item {
        let reports = self.dump.reports(block);
        let size = BlockSize { requested: block.req, slop: block.slop };
        Item {
            amount: Amount::new(block.num, size, block.kind.weight),
            size: block.usable(),
            slop: block.slop,
            state: analysis::class(self.mode, reports).into(),
            stack: block.kind.alloc.map_or(0, |trace| number(trace.index())),
            // In some dumps the numbers of threads begin at 0.
            thread: block.kind.thread.map_or(0, |thread| thread.saturating_add(1)),
            scope: block.kind.scope,
            reports: reports.map_or(0, |reports| self.reports_number(reports, block)),
            age_ms: block.kind.age_ms,
            address: block.addr.map(std::num::NonZeroU64::get),
        }
    }

    fn reports_number(&mut self, reports: &'d [TraceId], block: &Block<'d>) -> u32 {
        let reported = &mut self.reported;
        *self.reports.entry(reports).or_insert_with(|| {
            reported.push(*block);
            number(reported.len() - 1)
        })
    }

    fn names(&self, item: &Item, describe: impl Fn(&ReportSite) -> String) -> Vec<String> {
        let block = (item.reports as usize).checked_sub(1).and_then(|at| self.reported.get(at));
        let names = block.and_then(|block| report_names(self.dump, block, describe));
        distinct(names.unwrap_or_default())
    }

    fn trace(&self, item: &Item) -> Option<TraceId> {
        item.stack.checked_sub(1).map(TraceId)
    }

    /// Returns the frames of an item's stack, without the standard library's.
    fn own(&mut self, item: &Item) -> Rc<[Parts<'d>]> {
        let Some(trace) = self.trace(item) else { return Rc::from([]) };
        if let Some(last) = self.last.as_ref().filter(|last| last.trace == trace) {
            return Rc::clone(&last.frames);
        }
        let frames: Rc<[Parts<'d>]> = without_library(self.dump, self.dump.trace(trace)).into();
        self.last = Some(OwnFrames { trace, frames: Rc::clone(&frames) });
        frames
    }
}

/// Returns the number of a place in a list, from 1 on.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1)
}

impl Attributes for File<'_> {
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
        self.names(item, |site| site.path.clone())
    }

    fn fields(&mut self, item: &Item) -> Vec<String> {
        self.names(item, field_name)
    }

    fn scopes(&mut self, item: &Item) -> Vec<String> {
        let names = self.dump.extension.as_ref().map(|ours| ours.scope_names(item.scope));
        names.unwrap_or_default().into_iter().map(str::to_owned).collect()
    }

    fn thread(&mut self, item: &Item) -> Option<String> {
        Some(thread_name(self.dump, item.thread.checked_sub(1)?))
    }

    fn type_name(&mut self, item: &Item) -> Option<String> {
        let trace = self.trace(item).map(|trace| self.dump.trace(trace));
        if let Some(BlockType::Known(name)) =
            trace.map(|trace| BlockType::of_trace(self.dump, trace))
        {
            return Some(name);
        }
        // A native report stack has one name for path, type and field.
        self.dump.extension.as_ref()?;
        let owners = self.names(item, |site| site.type_name.clone().unwrap_or_default());
        owners.iter().find(|name| !name.is_empty()).map(|name| owned_by(name))
    }

    fn stack(&mut self, item: &Item, cut: StackCut) -> Option<Arc<[Arc<str>]>> {
        let trace = self.dump.trace(self.trace(item)?);
        let parts = match self.which {
            Frames::All => without_allocator(self.dump, trace),
            Frames::Own => without_library(self.dump, trace),
        };
        let frame = |parts: &Parts<'_>| {
            let text = self.style.frame(parts, 0);
            let known = self.texts.entry(text);
            Arc::clone(known.or_insert_with_key(|text| text.as_str().into()))
        };
        let frames: Arc<[Arc<str>]> = cut.apply(parts).iter().map(frame).collect();
        (!frames.is_empty()).then_some(frames)
    }

    fn site(&mut self, item: &Item) -> Option<String> {
        let frames = self.own(item);
        let own = frames.iter().find(|parts| parts.is_own());
        own.or(frames.first()).map(|parts| self.style.frame(parts, 0))
    }

    fn file(&mut self, item: &Item) -> Option<String> {
        let file = self.own(item).iter().find(|parts| parts.is_own())?.file?;
        Some(self.style.file(file).to_owned())
    }

    fn crate_name(&mut self, item: &Item) -> Option<String> {
        let frames = self.own(item);
        self.crates.of_first(&frames).map(Cow::into_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read_slice;

    #[test]
    fn a_census_has_the_notes_of_its_dump() {
        let text = r#"{"version":5,"invocation":{"dmdEnvVar":"1","mode":"live"},"blockList":[],"traceTable":{},"frameTable":{}}"#;
        let mut dump = read_slice(text.as_bytes()).unwrap();
        let notes = |dump: &Dump| {
            let census = of_dump(dump, &Breakdown::default(), &FileOptions::default());
            census.notes().to_vec()
        };
        assert_eq!(notes(&dump), Vec::<String>::new());
        dump.notes.push("some blocks were lost".to_owned());
        assert_eq!(notes(&dump), ["some blocks were lost"]);
    }

    #[test]
    fn blocks_that_nothing_reaches_are_added_up_apart() {
        let text = r#"{"version":5,"invocation":{"dmdEnvVar":null,"mode":"scan"},
            "blockList":[{"req":700,"slop":68,"addr":"1000","contents":["3000"]},{"req":200,"addr":"3000"},
              {"req":100,"slop":4,"addr":"4000"},{"req":30,"slop":2,"addr":"5000"}],
            "memreport":{"version":1,"statics":[{"module":"/p","offset":"8","name":"shop::CARTS","to":"1000"}]},
            "traceTable":{},"frameTable":{}}"#;
        let dump = read_slice(text.as_bytes()).unwrap();
        let found = of_reachable(&dump, &Breakdown::default(), &FileOptions::default()).unwrap();
        assert_eq!(found.unreachable, Sum { blocks: 2, bytes: 136 });
    }
}
