//! The blocks of a dump by one question: whose code, which type, which reporter, which thread, which size.

use std::collections::HashMap;
use std::io::{self, Write};

use super::frames::{Sites, Style};
use super::number::{commas, percent};
use super::options::ExplainOptions;
use super::records::{Class, Totals, class, mode};
use crate::read::{Block, Dump, ReportSite};

/// What blocks are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum By {
    /// The program's own frames.
    Stack,
    /// The type, where the frames tell it.
    Type,
    /// The paths of the reports that count them.
    Reporter,
    /// The type and field by which they were reported.
    Field,
    /// The crate whose code asked for them.
    Crate,
    /// The thread that allocated them.
    Thread,
    /// The scope of the program that they were allocated in: `request > search`.
    Scope,
    /// Their usable size.
    Size,
}

/// Blocks with one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Group {
    /// The answer.
    pub name: String,
    /// All its blocks.
    pub all: Totals,
    /// Those that no reporter covers.
    pub unreported: Totals,
    /// Those reported twice or more often.
    pub twice: Totals,
}

const NOT_REPORTED: &str = "(not reported)";

/// The groups of a dump, largest first.
#[must_use]
pub fn group_by(dump: &Dump, by: By, options: &ExplainOptions) -> Vec<Group> {
    let style = Style { root: options.root.as_deref(), width: options.width };
    let sites = Sites::new(dump, options.max_frames, &style);
    let mut groups: Vec<Group> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mode = mode(dump);
    for block in &dump.blocks {
        let name = name(dump, block, by, &sites);
        let at = *places.entry(name).or_insert_with_key(|name| {
            let none = Totals::default();
            groups.push(Group { name: name.clone(), all: none, unreported: none, twice: none });
            groups.len() - 1
        });
        let group = &mut groups[at];
        group.all.add_weighted(block);
        match class(mode, dump.reports(block)) {
            Class::Unreported => group.unreported.add_weighted(block),
            Class::TwiceReported => group.twice.add_weighted(block),
            _ => {}
        }
    }
    groups.sort_by(|a, b| b.all.usable().cmp(&a.all.usable()).then_with(|| a.name.cmp(&b.name)));
    groups
}

fn name(dump: &Dump, block: &Block, by: By, sites: &Sites) -> String {
    let site = sites.get(block.alloc);
    match by {
        By::Stack if site.frames.is_empty() => "(no stack was recorded)".to_owned(),
        By::Stack => site.frames.join(" < "),
        By::Type => site.block_type.describe(),
        By::Crate => site.krate.clone().unwrap_or_else(|| "(unknown)".to_owned()),
        By::Reporter => reporters(dump, block, |site| site.path.clone()),
        By::Field => reporters(dump, block, |site| match (&site.type_name, &site.field) {
            (Some(name), Some(field)) => format!("{name}.{field}"),
            (Some(name), None) => name.clone(),
            _ => site.path.clone(),
        }),
        By::Thread => thread(dump, block),
        By::Scope => scope(dump, block),
        By::Size => format!("{} bytes", commas(block.usable().into())),
    }
}

fn reporters(dump: &Dump, block: &Block, describe: impl Fn(&ReportSite) -> String) -> String {
    report_names(dump, block, describe)
        .map_or_else(|| NOT_REPORTED.to_owned(), |names| names.join(" and "))
}

/// Who reports a block, first report first: nothing if nobody does.
pub(crate) fn report_names(
    dump: &Dump,
    block: &Block,
    describe: impl Fn(&ReportSite) -> String,
) -> Option<Vec<String>> {
    let traces = dump.reports(block)?;
    let sites = dump.extension.as_ref().map(|extension| &extension.reports);
    let one = |trace| match sites.and_then(|sites| sites.get(trace)) {
        Some(site) => describe(site),
        // A native report stack: its first frame is the measuring function, named for its reporter.
        None => dump.trace(*trace).first().map_or_else(String::new, |frame| {
            let text = &*dump.frames[frame.index()].text;
            text.split_once(": ").map_or(text, |(_, text)| text).to_owned()
        }),
    };
    Some(traces.iter().map(one).collect())
}

fn thread(dump: &Dump, block: &Block) -> String {
    block.thread.map_or_else(|| "(unknown)".to_owned(), |id| thread_name(dump, id))
}

/// The name of the thread with this number, and the number, since names are not unique.
pub(crate) fn thread_name(dump: &Dump, id: u32) -> String {
    let mut threads = dump.extension.iter().flat_map(|extension| &extension.threads);
    match threads.find(|thread| thread.id == id).and_then(|thread| thread.name.as_deref()) {
        Some(name) => format!("{name} ({id})"),
        None => format!("thread {id}"),
    }
}

fn scope(dump: &Dump, block: &Block) -> String {
    let names = dump.extension.as_ref().map(|extension| extension.scope_names(block.scope));
    match names.unwrap_or_default() {
        names if names.is_empty() => "(in no scope)".to_owned(),
        names => names.join(" > "),
    }
}

/// Writes the first `top` groups as a table.
///
/// # Errors
///
/// If writing fails.
pub fn write_groups(groups: &[Group], top: usize, out: &mut dyn Write) -> io::Result<()> {
    let all: i128 = groups.iter().map(|group| group.all.usable()).sum();
    writeln!(
        out,
        "{:>15} {:>8} {:>11} {:>15} {:>15}  of",
        "bytes", "share", "blocks", "dark", "twice"
    )?;
    for group in groups.iter().take(top) {
        let share = format!("{:.2}%", percent(group.all.usable(), all));
        let [bytes, blocks] = [group.all.usable(), group.all.blocks].map(commas);
        let [dark, twice] = [group.unreported.usable(), group.twice.usable()].map(commas);
        writeln!(
            out,
            "{bytes:>15} {share:>8} {blocks:>11} {dark:>15} {twice:>15}  {}",
            group.name
        )?;
    }
    if groups.len() > top {
        writeln!(out, "{:>15} … and {} more", "", commas((groups.len() - top) as i128))?;
    }
    Ok(())
}
