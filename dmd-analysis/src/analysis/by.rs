//! The blocks of a dump grouped by one axis, as a table.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use super::frames::{Parts, Site, Sites, Style, without_library};
use super::number::{commas, percent};
use super::options::ExplainOptions;
use super::records::{Class, Totals, UNTRACKED, class, mode};
use crate::axis::{Attributes, Axis, ReportState, StackCut, key, thread_text};
use crate::read::{Block, Dump, Mode, ReportSite, TraceId};

/// The blocks with one key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Group {
    /// The key as a text.
    pub name: String,
    /// All its blocks.
    pub all: Totals,
    /// The blocks that no report counts.
    pub unreported: Totals,
    /// The blocks that two reports or more count.
    pub twice: Totals,
}

/// Groups the blocks of a dump by an axis, and returns the groups, largest first.
///
/// # Examples
///
/// ```
/// use memreport_analysis::analysis::{ExplainOptions, group_by};
///
/// let dump = memreport_analysis::read::read_slice(
///     br##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "live"},
///          "blockList": [{"req": 100, "slop": 12, "num": 2}, {"req": 8, "slop": 8}],
///          "traceTable": {}, "frameTable": {}}"##,
/// )?;
/// let groups = group_by(&dump, &"size".parse()?, &ExplainOptions::default());
/// assert_eq!(groups[0].name, "112 bytes");
/// assert_eq!(groups[0].all.blocks, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn group_by(dump: &Dump, axis: &Axis, options: &ExplainOptions) -> Vec<Group> {
    let style = Style { root: options.root.as_deref(), width: options.width };
    let sites = Sites::new(dump, options.max_frames, &style);
    let mut blocks = DumpBlocks::new(dump, &sites, style);
    let mut groups: Vec<Group> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for block in dump.blocks.added_up() {
        let at = *places.entry(blocks.group_name(&block, axis)).or_insert_with_key(|name| {
            let none = Totals::default();
            groups.push(Group { name: name.clone(), all: none, unreported: none, twice: none });
            groups.len() - 1
        });
        let group = &mut groups[at];
        group.all.add_weighted(&block);
        match blocks.state(&block) {
            ReportState::Unreported => group.unreported.add_weighted(&block),
            ReportState::Twice => group.twice.add_weighted(&block),
            _ => {}
        }
    }
    groups.extend(untracked_group(dump));
    groups.sort_by(|a, b| b.all.usable().cmp(&a.all.usable()).then_with(|| a.name.cmp(&b.name)));
    groups
}

/// Returns the group of the untracked blocks, if there are any.
fn untracked_group(dump: &Dump) -> Option<Group> {
    let untracked = dump.extension.as_ref()?.untracked;
    let none = Totals::default();
    let group =
        Group { name: UNTRACKED.to_owned(), all: untracked.into(), unreported: none, twice: none };
    (untracked.blocks > 0).then_some(group)
}

/// The blocks of a dump as a source of keys, with sites that are looked up already.
pub(crate) struct DumpBlocks<'d> {
    dump: &'d Dump,
    sites: &'d Sites,
    style: Style<'d>,
    mode: Mode,
    files: HashMap<TraceId, Option<String>>,
    stacks: HashMap<CutStack, Option<Arc<[Arc<str>]>>>,
}

/// A part of a stack of the dump.
#[derive(PartialEq, Eq, Hash)]
struct CutStack {
    trace: TraceId,
    cut: StackCut,
}

impl<'d> DumpBlocks<'d> {
    pub(crate) fn new(dump: &'d Dump, sites: &'d Sites, style: Style<'d>) -> Self {
        let (files, stacks) = (HashMap::new(), HashMap::new());
        Self { dump, sites, style, mode: mode(dump), files, stacks }
    }

    /// Returns the name of the group of a block. Blocks without a key have a name in parentheses,
    /// or their site's.
    pub(crate) fn group_name(&mut self, block: &Block<'d>, axis: &Axis) -> String {
        let key = key(self, block, axis);
        key.map_or_else(|| self.without_key(block, axis), |key| key.describe())
    }

    fn without_key(&self, block: &Block<'_>, axis: &Axis) -> String {
        match axis {
            Axis::Type => self.site_of(block).block_type.describe(),
            axis => axis.missing_text().to_owned(),
        }
    }

    fn site_of(&self, block: &Block<'_>) -> &'d Site {
        self.sites.get(block.kind.alloc)
    }
}

impl<'d> Attributes for DumpBlocks<'d> {
    type Block = Block<'d>;

    fn size(&self, block: &Block<'d>) -> u64 {
        block.usable()
    }

    fn state(&self, block: &Block<'d>) -> ReportState {
        class(self.mode, self.dump.reports(block)).into()
    }

    fn age_ms(&self, block: &Block<'d>) -> Option<u64> {
        block.kind.age_ms
    }

    fn reporters(&mut self, block: &Block<'d>) -> Vec<String> {
        report_names(self.dump, block, |site| site.path.clone()).unwrap_or_default()
    }

    fn fields(&mut self, block: &Block<'d>) -> Vec<String> {
        report_names(self.dump, block, field_name).unwrap_or_default()
    }

    fn scopes(&mut self, block: &Block<'d>) -> Vec<String> {
        let names = self.dump.extension.as_ref().map(|ours| ours.scope_names(block.kind.scope));
        names.unwrap_or_default().into_iter().map(str::to_owned).collect()
    }

    fn thread(&mut self, block: &Block<'d>) -> Option<String> {
        block.kind.thread.map(|id| thread_name(self.dump, id))
    }

    fn type_name(&mut self, block: &Block<'d>) -> Option<String> {
        match &self.site_of(block).block_type {
            super::BlockType::Known(name) => Some(name.clone()),
            _ => None,
        }
    }

    fn stack(&mut self, block: &Block<'d>, cut: StackCut) -> Option<Arc<[Arc<str>]>> {
        let site = self.site_of(block);
        let stack =
            self.stacks.entry(CutStack { trace: block.kind.alloc?, cut }).or_insert_with(|| {
                let frames = cut.apply(site.frames.iter().collect());
                let frames: Arc<[_]> = frames.iter().map(|frame| frame.as_str().into()).collect();
                (!frames.is_empty()).then_some(frames)
            });
        stack.clone()
    }

    fn site(&mut self, block: &Block<'d>) -> Option<String> {
        let site = self.site_of(block);
        site.own.as_ref().or(site.frames.first()).cloned()
    }

    fn file(&mut self, block: &Block<'d>) -> Option<String> {
        let (dump, style, trace) = (self.dump, &self.style, block.kind.alloc?);
        let file = self.files.entry(trace).or_insert_with(|| {
            let frames = without_library(dump, dump.trace(trace));
            let file = frames.iter().find(|parts| Parts::is_own(parts))?.file?;
            Some(style.file(file).to_owned())
        });
        file.clone()
    }

    fn crate_name(&mut self, block: &Block<'d>) -> Option<String> {
        self.site_of(block).krate.clone()
    }
}

impl From<Class> for ReportState {
    fn from(class: Class) -> Self {
        match class {
            Class::Unreported => ReportState::Unreported,
            Class::OnceReported => ReportState::Once,
            Class::TwiceReported => ReportState::Twice,
            Class::Live | Class::Cumulative | Class::Untracked => ReportState::Other,
        }
    }
}

/// Returns the names of the reports that count a block, the first report first; `None` if no report
/// does.
pub(crate) fn report_names(
    dump: &Dump,
    block: &Block<'_>,
    describe: impl Fn(&ReportSite) -> String,
) -> Option<Vec<String>> {
    let traces = dump.reports(block)?;
    let sites = dump.extension.as_ref().map(|extension| &extension.reports);
    let one = |trace| match sites.and_then(|sites| sites.get(trace)) {
        Some(site) => describe(site),
        // The first frame of a native report stack is the measuring function. It has its reporter's
        // name.
        None => dump.trace(*trace).first().map_or_else(String::new, |frame| {
            let text = &*dump.frames[frame.index()].text;
            text.split_once(": ").map_or(text, |(_, text)| text).to_owned()
        }),
    };
    Some(traces.iter().map(one).collect())
}

/// Returns the type and field that made a report, as far as they are known, or else the report's
/// path.
pub(crate) fn field_name(site: &ReportSite) -> String {
    match (&site.type_name, &site.field) {
        (Some(name), Some(field)) => format!("{name}.{field}"),
        (Some(name), None) => name.clone(),
        _ => site.path.clone(),
    }
}

/// Returns the name of the thread with this number.
pub(crate) fn thread_name(dump: &Dump, id: u32) -> String {
    let mut threads = dump.extension.iter().flat_map(|extension| &extension.threads);
    let thread = threads.find(|thread| thread.id == id);
    thread_text(thread.and_then(|thread| thread.name.as_deref()), id)
}

/// Writes the first `top` groups as a table.
///
/// # Errors
///
/// Returns an error if writing fails.
pub fn write_groups(groups: &[Group], top: usize, out: &mut dyn Write) -> io::Result<()> {
    let all: i128 = groups.iter().map(|group| group.all.usable()).sum();
    writeln!(
        out,
        "{:>15} {:>8} {:>11} {:>15} {:>15}  of",
        "bytes", "share", "blocks", "unreported", "twice"
    )?;
    for group in groups.iter().take(top) {
        let share = format!("{:.2}%", percent(group.all.usable(), all));
        let [bytes, blocks] = [group.all.usable(), group.all.blocks].map(commas);
        let [unreported, twice] = [group.unreported.usable(), group.twice.usable()].map(commas);
        writeln!(
            out,
            "{bytes:>15} {share:>8} {blocks:>11} {unreported:>15} {twice:>15}  {}",
            group.name
        )?;
    }
    if groups.len() > top {
        writeln!(out, "{:>15} … and {} more", "", commas((groups.len() - top) as i128))?;
    }
    Ok(())
}
