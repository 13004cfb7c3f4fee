//! The places of a program where its blocks come from, as people look for them: by the program's own frames and the type.

use std::collections::{BTreeSet, HashMap};

use super::people::{Parts, Style, without_library};
use super::remedies::{Dark, Remedies};
use super::types::BlockType;
use super::{Class, Totals};
use crate::read::{Block, Dump, Mode, ReportSite, Sampled, Sum, TraceId, WrongKind};
use crate::symbols::Members;

/// Where blocks were allocated.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Site {
    /// What is known of their type.
    pub block_type: BlockType,
    /// The frames, innermost first, libraries in front left out: `subject::Lexicon::intern (src/lexicon.rs:41)`.
    pub frames: Vec<String>,
    /// The first frame that is the program's own code, if there is one.
    pub own: Option<String>,
    /// The crate whose code asked for the blocks.
    pub krate: Option<String>,
    /// The crate that was called there, if the innermost frame is not the program's own.
    pub through: Option<String>,
}

/// Blocks of one class from one place.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Place {
    /// Where they were allocated.
    pub site: Site,
    /// Who reported them, first report first.
    pub reporters: Vec<String>,
    /// What they amount to.
    pub totals: Totals,
    /// What to do about them, in a line, where that is known.
    pub remedy: Option<String>,
}

/// Reports of one kind that do not fit the heap, from one reporter.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WrongPlace {
    /// In what way they do not fit.
    pub kind: WrongKind,
    /// Who made them.
    pub reporter: String,
    /// How many.
    pub num: u64,
    /// The bytes they claimed.
    pub claimed: i128,
    /// The usable bytes of the blocks that they are about.
    pub usable: i128,
    /// The first address, in hexadecimal.
    pub addr: String,
    /// Where the blocks were allocated, if that is known.
    pub site: Option<Site>,
    /// What to do about them, in a line, where that is known.
    pub remedy: Option<String>,
}

/// How places are told apart and shown.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExplainOptions {
    /// Places to show of each class.
    pub top: usize,
    /// Frames of a stack that tell places apart.
    pub max_frames: usize,
    /// Columns that a line of a frame may take; 0 for any number.
    pub width: usize,
    /// The program's directory, left out of its paths.
    pub root: Option<String>,
    /// Where the fields of [`pointing_types`] are, if that was looked up.
    pub members: Members,
}

impl Default for ExplainOptions {
    fn default() -> Self {
        Self { top: 5, max_frames: 8, width: 0, root: None, members: Members::new() }
    }
}

/// A dump explained: dark places, doubles, wrong reports, each biggest first.
#[derive(Debug)]
#[non_exhaustive]
pub struct Explained {
    /// What was recorded.
    pub mode: Mode,
    /// Of a profile, what the sample says of all blocks. The figures below are estimates then.
    pub sampled: Option<Sampled>,
    /// Live blocks that the tracker was never told of. No figure below has them.
    pub untracked: Sum,
    /// All blocks.
    pub heap: Totals,
    /// Blocks by class, largest place first.
    pub places: Vec<(Class, Vec<Place>)>,
    /// Reports that do not fit the heap.
    pub wrong: Vec<WrongPlace>,
}

impl Explained {
    /// The places of a class.
    #[must_use]
    pub fn places(&self, class: Class) -> &[Place] {
        self.places.iter().find(|(other, _)| *other == class).map_or(&[], |(_, places)| places)
    }

    /// All blocks of a class.
    #[must_use]
    pub fn totals(&self, class: Class) -> Totals {
        self.places(class).iter().fold(Totals::default(), |sum, place| sum.plus(&place.totals))
    }

    /// What heap-unclassified must be if this dump and the reports are of one moment: dark bytes, and those that partial
    /// reports left out, less everything that was counted more than once or is not on the heap.
    #[must_use]
    pub fn heap_unclassified(&self) -> i128 {
        let dark = self.totals(Class::Unreported).usable();
        let again = |place: &Place| {
            let reports = i128::try_from(place.reporters.len()).unwrap_or(i128::MAX);
            place.totals.usable().saturating_mul(reports - 1)
        };
        let doubled: i128 = self.places(Class::TwiceReported).iter().map(again).sum();
        let wrong: i128 = self.wrong.iter().map(WrongPlace::missing).sum();
        dark - doubled + wrong
    }
}

impl WrongPlace {
    /// Bytes of the heap that these reports leave out; negative where they count what is not there.
    #[must_use]
    pub fn missing(&self) -> i128 {
        if self.kind == WrongKind::Partial { self.usable - self.claimed } else { -self.claimed }
    }
}

/// Explains a dump.
#[must_use]
pub fn explain(dump: &Dump, options: &ExplainOptions) -> Explained {
    let style = Style { root: options.root.as_deref(), width: options.width };
    let sites = Sites::new(dump, options.max_frames, &style);
    let mut heap = Totals::default();
    let mode = mode(dump);
    let mut by_place: HashMap<(Class, usize, &[TraceId]), Blocks<'_>> = HashMap::new();
    let remedies = Remedies::new(dump, &style, &options.members);
    for (index, block) in dump.blocks.iter().enumerate() {
        heap.add_weighted(block);
        let reports = dump.reports(block);
        let site = sites.of(block.alloc);
        let class = class(mode, reports);
        let blocks = by_place.entry((class, site, reports.unwrap_or(&[]))).or_default();
        blocks.totals.add_weighted(block);
        if class == Class::Unreported {
            let held = block.held_by.map(|by| (block.is_held_through, by));
            add(&mut blocks.dark.held, held, block);
            add(&mut blocks.dark.pointed, remedies.pointing(dump, index), block);
        }
    }
    let mut places: Vec<(Class, Vec<Place>)> = Vec::new();
    for ((class, site, reports), Blocks { totals, dark }) in by_place {
        let reporters = reports.iter().map(|&trace| reporter(dump, Some(trace), &style)).collect();
        let site = sites.sites[site].clone();
        let remedy = match class {
            Class::Unreported => {
                let type_of = |alloc| sites.get(alloc).block_type.clone();
                remedies.dark(&site, totals, &dark, type_of)
            }
            Class::TwiceReported => remedies.double(reports, &site.block_type),
            _ => None,
        };
        let place = Place { site, reporters, totals, remedy };
        match places.iter_mut().find(|(other, _)| *other == class) {
            Some((_, list)) => list.push(place),
            None => places.push((class, vec![place])),
        }
    }
    for (_, list) in &mut places {
        // The order must not depend on the order of a hash table.
        list.sort_by_cached_key(|place| {
            let size = (place.totals.usable(), place.totals.blocks);
            (
                std::cmp::Reverse(size),
                place.site.frames.clone(),
                place.site.block_type.clone(),
                place.reporters.clone(),
            )
        });
    }
    let (sampled, untracked) = dump
        .extension
        .as_ref()
        .map_or((None, Sum::default()), |ours| (ours.sampled, ours.untracked));
    let wrong = wrong(dump, &sites, &remedies, &style);
    Explained { mode, sampled, untracked, heap, places, wrong }
}

/// In a scan, the types whose values point at blocks that nobody reports, though they are reported themselves: what their
/// fields are called makes remedies clearer.
#[must_use]
pub fn pointing_types(dump: &Dump, options: &ExplainOptions) -> Vec<String> {
    let mode = mode(dump);
    if dump.invocation.mode != Mode::Scan || mode != Mode::DarkMatter {
        return Vec::new();
    }
    let style = Style::default();
    let sites = Sites::new(dump, options.max_frames, &style);
    let members = Members::new();
    let remedies = Remedies::new(dump, &style, &members);
    let dark = dump.blocks.iter().enumerate().filter(|(_, block)| dump.reports(block).is_none());
    let types = dark.filter_map(|(index, _)| {
        let pointing = remedies.pointing(dump, index)?;
        let BlockType::Known(name) = &sites.get(pointing.alloc).block_type else { return None };
        remedies.own_type(name).map(str::to_owned)
    });
    let types: BTreeSet<String> = types.collect();
    types.into_iter().collect()
}

/// Blocks of one place.
#[derive(Default)]
struct Blocks<'d> {
    totals: Totals,
    dark: Dark<'d>,
}

/// Adds a block to those that have the same to do with.
fn add<K: PartialEq>(sums: &mut Vec<(K, Totals)>, key: Option<K>, block: &Block) {
    // A place with more than a few such keys is told by its biggest all the same.
    const MOST: usize = 64;
    let Some(key) = key else { return };
    let is_full = sums.len() == MOST;
    match sums.iter_mut().find(|(other, _)| *other == key) {
        Some((_, totals)) => totals.add_weighted(block),
        None if !is_full => {
            let mut totals = Totals::default();
            totals.add_weighted(block);
            sums.push((key, totals));
        }
        None => {}
    }
}

/// What the blocks are read for. Our scans know who reports what; they only may not say so in Mozilla's words.
pub(crate) fn mode(dump: &Dump) -> Mode {
    match dump.invocation.mode {
        Mode::Scan if dump.extension.is_some() => Mode::DarkMatter,
        mode => mode,
    }
}

pub(crate) fn class(mode: Mode, reports: Option<&[TraceId]>) -> Class {
    match (mode, reports.map(<[TraceId]>::len)) {
        (Mode::Live | Mode::Scan, _) => Class::Live,
        (Mode::Cumulative, _) => Class::Cumulative,
        (Mode::DarkMatter, None) => Class::Unreported,
        (Mode::DarkMatter, Some(1)) => Class::OnceReported,
        (Mode::DarkMatter, Some(_)) => Class::TwiceReported,
    }
}

/// The sites of a dump, by its stacks.
#[derive(Debug)]
pub(crate) struct Sites {
    sites: Vec<Site>,
    by_trace: Vec<usize>,
}

impl Sites {
    pub(crate) fn new(dump: &Dump, max_frames: usize, style: &Style<'_>) -> Self {
        let unknown = Site {
            block_type: BlockType::Unknown,
            frames: Vec::new(),
            own: None,
            krate: None,
            through: None,
        };
        let mut numbers = HashMap::from([(unknown.clone(), 0)]);
        let mut sites = vec![unknown];
        let by_trace = (0..dump.trace_count()).map(|index| {
            let site =
                site(dump, TraceId(u32::try_from(index).unwrap_or(u32::MAX)), max_frames, style);
            *numbers.entry(site).or_insert_with_key(|site| {
                sites.push(site.clone());
                sites.len() - 1
            })
        });
        let by_trace = by_trace.collect();
        Self { sites, by_trace }
    }

    pub(crate) fn get(&self, trace: Option<TraceId>) -> &Site {
        &self.sites[self.of(trace)]
    }

    /// All of them, by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Site> {
        self.sites.iter()
    }

    /// The site of this number.
    pub(crate) fn numbered(&self, number: usize) -> &Site {
        &self.sites[number]
    }

    /// The number of the site of a stack; 0 is that of no stack.
    pub(crate) fn of(&self, trace: Option<TraceId>) -> usize {
        trace.map_or(0, |trace| self.by_trace[trace.index()])
    }
}

fn site(dump: &Dump, trace: TraceId, max_frames: usize, style: &Style<'_>) -> Site {
    let all = dump.trace(trace);
    let shown = without_library(dump, all);
    let own = shown.iter().position(Parts::is_own);
    let through = own.filter(|&at| at > 0).and_then(|_| shown.first()?.crate_name());
    let indent = FRAME_INDENT;
    Site {
        block_type: BlockType::of_trace(dump, all),
        frames: lines(&shown, max_frames, style),
        own: own.map(|at| style.frame(&shown[at], indent)),
        krate: shown.first().and_then(Parts::crate_name).map(str::to_owned),
        through: through.map(str::to_owned),
    }
}

/// The lines of a stack. A function that calls itself takes one line, however deep it went.
fn lines(frames: &[Parts<'_>], max_frames: usize, style: &Style<'_>) -> Vec<String> {
    const AGAIN: &str = ", recursively";
    let mut lines: Vec<String> = Vec::new();
    for parts in frames {
        let line = style.frame(parts, FRAME_INDENT);
        let is_full = lines.len() == max_frames;
        match lines.last_mut() {
            Some(last) if last.strip_suffix(AGAIN) == Some(&*line) => {}
            Some(last) if *last == line => last.push_str(AGAIN),
            _ if is_full => break,
            _ => lines.push(line),
        }
    }
    lines
}

/// Columns before a frame: `    #01: `.
const FRAME_INDENT: usize = 9;

/// Who reported, in a line: the path of the report, then the field.
pub(crate) fn reporter(dump: &Dump, trace: Option<TraceId>, style: &Style<'_>) -> String {
    let Some(trace) = trace else { return "an unknown reporter".to_owned() };
    let sites = dump.extension.as_ref().map(|extension| &extension.reports);
    if let Some(site) = sites.and_then(|sites| sites.get(&trace)) {
        return describe_report(site, style);
    }
    let frames = without_library(dump, dump.trace(trace));
    let first = frames.first().map(|parts| style.frame(parts, FRAME_INDENT));
    first.unwrap_or_else(|| "an unknown reporter".to_owned())
}

fn describe_report(site: &ReportSite, style: &Style<'_>) -> String {
    let mut text = site.path.clone();
    let place = match (&site.file, site.line) {
        (Some(file), Some(line)) => format!(" ({}:{line})", style.file(file)),
        _ => String::new(),
    };
    let field = site.field.as_ref().map_or_else(String::new, |field| format!(".{field}"));
    match &site.type_name {
        Some(name) => text.push_str(&format!(": {name}{field}{place}")),
        None => text.push_str(&place),
    }
    text
}

fn wrong(
    dump: &Dump,
    sites: &Sites,
    remedies: &Remedies<'_>,
    style: &Style<'_>,
) -> Vec<WrongPlace> {
    let reports = dump.extension.iter().flat_map(|extension| &extension.wrong);
    let mut places: Vec<WrongPlace> = Vec::new();
    let mut numbers = HashMap::new();
    for report in reports {
        let site = report.alloc.map(|alloc| sites.of(Some(alloc)));
        let at = *numbers.entry((report.kind, report.reporter, site)).or_insert_with(|| {
            places.push(WrongPlace {
                kind: report.kind,
                reporter: reporter(dump, report.reporter, style),
                num: 0,
                claimed: 0,
                usable: 0,
                addr: report.addr.clone(),
                site: site.map(|site| sites.sites[site].clone()),
                remedy: remedies.wrong(report),
            });
            places.len() - 1
        });
        let num = i128::from(report.num);
        places[at].num = places[at].num.saturating_add(report.num);
        places[at].claimed += num * i128::from(report.claimed);
        places[at].usable += num * i128::from(report.usable.unwrap_or(0));
    }
    places.sort_by_key(|place| (place.kind, std::cmp::Reverse(place.claimed)));
    places
}
