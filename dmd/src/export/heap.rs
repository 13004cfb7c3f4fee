//! The heap of a dump as every format has it: rows of blocks that are alike, with what they stand for.
//!
//! What a sampled block stands for is rounded here, once, so that all formats show the same numbers.

use std::cmp::{Ordering, Reverse};
use std::time::SystemTime;

use rustc_hash::FxHashMap;

use super::table::Table;
use crate::analysis::{
    self, BlockType, Class, NoReports, Parts, Totals, report_names, thread_name, without_allocator,
    without_library,
};
use crate::dump::read::{Block, Dump, Mode, Module, ReportSite, TraceId};
use crate::symbols::Address;

/// What of a dump is exported, and how.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HeapOptions {
    /// Which frames stacks have.
    pub frames: Frames,
    /// Only blocks of this class.
    pub only: Option<Class>,
    /// When the dump was taken, for formats that say so. Dumps do not know it.
    pub taken: Option<SystemTime>,
}

/// Which frames stacks have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Frames {
    /// All but the allocator's and the tracker's in front.
    #[default]
    All,
    /// Those of the program and of the crates it uses: without the standard library, and what is beyond `main`.
    Own,
}

/// The heap of a dump.
#[derive(Debug)]
pub struct Heap {
    pub(super) process: Process,
    pub(super) knows: Knows,
    /// Whether the dump says who reports what.
    has_reports: bool,
    pub(super) only: Option<Class>,
    /// The bytes between two samples, on average, if it is a sample.
    pub(super) sample_bytes: Option<u64>,
    pub(super) taken: Option<SystemTime>,
    pub(super) frames: Vec<HeapFrame>,
    /// Frames by number, innermost first. None is empty.
    pub(super) stacks: Vec<Box<[u32]>>,
    /// Types, threads and reporters.
    pub(super) texts: Vec<String>,
    /// Largest first, and in the same order for the same blocks.
    pub(super) rows: Vec<Row>,
    modules: Vec<Module>,
}

/// The process that wrote the dump.
#[derive(Debug, Clone)]
pub(super) struct Process {
    /// The path of its program, or words that say that it is unknown.
    pub(super) program: String,
    pub(super) pid: u32,
    pub(super) uptime_ms: u64,
    /// What was kept, as `$DMD` calls it.
    pub(super) mode: String,
}

impl Process {
    /// The program's name without directories.
    pub(super) fn name(&self) -> &str {
        self.program.rsplit('/').next().unwrap_or_default()
    }
}

/// Which amounts of a row are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Knows {
    /// What lives.
    Live,
    /// All that was allocated, not how much of it lives.
    Allocated,
    Both,
}

/// A function at a place of its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeapFrame {
    pub(super) function: String,
    pub(super) file: Option<String>,
    pub(super) line: Option<u32>,
    /// Whether it was inlined into the next frame.
    pub(super) inlined: bool,
    /// Where it is, if nothing else is known of it: module and offset in its file.
    pub(super) address: Option<(String, u64)>,
}

impl HeapFrame {
    /// As valgrind's tools write frames, and their viewers take them apart: `0x0: main (src/main.rs:12)`. Only frames that
    /// could not be looked up have their address still.
    pub(super) fn valgrind_text(&self) -> String {
        let function = &self.function;
        match (&self.file, self.line, &self.address) {
            (_, _, Some((module, offset))) => format!("{offset:#x}: ??? (in {module})"),
            (Some(file), Some(line), _) => format!("0x0: {function} ({file}:{line})"),
            (Some(file), None, _) => format!("0x0: {function} (in {file})"),
            (None, ..) => format!("0x0: {function} (in ???)"),
        }
    }
}

/// The number of a text of the heap.
pub(super) type TextId = u32;

/// Blocks that are alike.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) kind: Kind,
    /// Those that live.
    pub(super) live: Totals,
    /// Those and the ones that were given back, where the dump has them.
    pub(super) allocated: Totals,
}

/// Who reports a block, first report first: the path, and the field where a derived type led there.
pub(super) type Reports = Box<[(TextId, Option<TextId>)]>;

/// What makes blocks alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    pub(super) stack: u32,
    pub(super) class: Class,
    pub(super) block_type: Option<TextId>,
    pub(super) thread: Option<TextId>,
    /// Who reports them.
    pub(super) reports: Reports,
    /// Usable bytes of one block.
    pub(super) size: u64,
}

impl Heap {
    /// The heap of a dump, whose frames should have been looked up.
    ///
    /// # Errors
    ///
    /// If blocks of one class are asked for, and the dump does not say who reports what.
    pub fn new(dump: &Dump, options: &HeapOptions) -> Result<Self, NoReports> {
        let mode = analysis::mode(dump);
        let has_reports = mode == Mode::DarkMatter;
        if options.only.is_some() && !has_reports {
            return Err(NoReports);
        }
        let mut builder = Builder::new(dump, options.frames);
        let ours = dump.extension.as_ref();
        let knows = match (dump.invocation.mode, ours) {
            (Mode::Cumulative, Some(_)) => Knows::Both,
            (Mode::Cumulative, None) => Knows::Allocated,
            _ => Knows::Live,
        };
        for block in &dump.blocks {
            let class = analysis::class(mode, dump.reports(block));
            if options.only.is_none_or(|only| only == class) {
                builder.enter(block, class, knows);
            }
        }
        let process = Process {
            program: ours
                .and_then(|ours| ours.program.clone())
                .unwrap_or_else(|| "(unknown program)".to_owned()),
            pid: ours.and_then(|ours| ours.pid).unwrap_or(0),
            uptime_ms: ours.and_then(|ours| ours.uptime_ms).unwrap_or(0),
            mode: ours
                .and_then(|ours| ours.mode.clone())
                .unwrap_or_else(|| mode_name(dump.invocation.mode).to_owned()),
        };
        let mut heap = Heap {
            process,
            knows,
            has_reports,
            only: options.only,
            sample_bytes: ours.and_then(|ours| ours.sampled).map(|sampled| sampled.sample_bytes),
            taken: options.taken,
            frames: builder.frames,
            stacks: builder.stacks.values().to_vec(),
            texts: builder.texts.values().to_vec(),
            rows: builder.rows,
            modules: ours.map_or_else(Vec::new, |ours| ours.modules.clone()),
        };
        let mut rows = std::mem::take(&mut heap.rows);
        rows.sort_by(|a, b| heap.order(a, b));
        heap.rows = rows;
        Ok(heap)
    }

    /// What all blocks amount to: those that live, or where the dump is of all that was allocated, those.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.rows.iter().fold(Totals::default(), |sum, row| sum.plus(&self.amount(row)))
    }

    /// The amount of a row where a format has room for one.
    pub(super) fn amount(&self, row: &Row) -> Totals {
        if self.knows == Knows::Live { row.live } else { row.allocated }
    }

    /// What [`amount`](Self::amount) is, in a word.
    pub(super) fn amount_name(&self) -> &'static str {
        if self.knows == Knows::Live { "live" } else { "allocated" }
    }

    /// The classes that are worth showing apart: none if the dump does not say who reports what.
    pub(super) fn classes(&self) -> &'static [Class] {
        let is_all = self.has_reports && self.only.is_none();
        if is_all { &[Class::Unreported, Class::OnceReported, Class::TwiceReported] } else { &[] }
    }

    /// The frames of a stack, innermost first.
    pub(super) fn stack(&self, stack: u32) -> impl DoubleEndedIterator<Item = &HeapFrame> {
        self.stacks[stack as usize].iter().map(|&frame| &self.frames[frame as usize])
    }

    pub(super) fn text(&self, text: TextId) -> &str {
        &self.texts[text as usize]
    }

    /// The amounts of each stack, in the order of rows: live ones, and allocated ones.
    pub(super) fn by_stack(&self) -> Vec<(u32, Totals, Totals)> {
        let mut sums: Vec<(u32, Totals, Totals)> = Vec::new();
        let mut places: FxHashMap<u32, usize> = FxHashMap::default();
        for Row { kind, live, allocated } in &self.rows {
            let at = *places.entry(kind.stack).or_insert_with(|| {
                sums.push((kind.stack, Totals::default(), Totals::default()));
                sums.len() - 1
            });
            let sum = &mut sums[at];
            *sum = (sum.0, sum.1.plus(live), sum.2.plus(allocated));
        }
        sums
    }

    /// The load bias and the build id of a module.
    pub(super) fn module(&self, path: &str) -> (u64, &str) {
        let module = self.modules.iter().find(|module| module.path == path);
        let base = module.and_then(|module| u64::from_str_radix(module.base.as_deref()?, 16).ok());
        let build_id = module.and_then(|module| module.build_id.as_deref());
        (base.unwrap_or(0), build_id.unwrap_or_default())
    }

    fn order(&self, a: &Row, b: &Row) -> Ordering {
        let size = |row: &Row| Reverse((self.amount(row).usable(), self.amount(row).blocks));
        let frames = |row: &Row| {
            let frames = self.stack(row.kind.stack);
            frames
                .map(|frame| (&frame.function, &frame.file, frame.line))
                .collect::<Vec<_>>()
        };
        let text = |id: Option<TextId>| id.map(|id| self.text(id));
        let rest = |row: &Row| {
            let Kind { class, block_type, thread, size, .. } = row.kind;
            (class.name(), text(block_type), text(thread), size)
        };
        let reports = |row: &Row| {
            let reports = row.kind.reports.iter();
            reports.map(|(path, field)| (self.text(*path), text(*field))).collect::<Vec<_>>()
        };
        size(a)
            .cmp(&size(b))
            .then_with(|| frames(a).cmp(&frames(b)))
            .then_with(|| rest(a).cmp(&rest(b)))
            .then_with(|| reports(a).cmp(&reports(b)))
    }
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Live => "live",
        Mode::DarkMatter => "dark-matter",
        Mode::Cumulative => "cumulative",
        Mode::Scan => "scan",
    }
}

/// What tells frames apart: equal ones of several stacks are one.
type FrameKey<'d> = (&'d str, Option<&'d str>, Option<u32>, bool);

/// Rows while blocks are entered.
struct Builder<'d> {
    dump: &'d Dump,
    which: Frames,
    frames: Vec<HeapFrame>,
    frame_numbers: FxHashMap<FrameKey<'d>, u32>,
    stacks: Table<Box<[u32]>>,
    texts: Table<String>,
    /// Stack and type of the dump's stacks that were met.
    traces: FxHashMap<Option<TraceId>, (u32, Option<TextId>)>,
    /// Reports of blocks that were met.
    reports: FxHashMap<&'d [TraceId], Reports>,
    rows: Vec<Row>,
    places: FxHashMap<Kind, usize>,
}

impl<'d> Builder<'d> {
    fn new(dump: &'d Dump, which: Frames) -> Self {
        Self {
            dump,
            which,
            frames: Vec::new(),
            frame_numbers: FxHashMap::default(),
            stacks: Table::default(),
            texts: Table::default(),
            traces: FxHashMap::default(),
            reports: FxHashMap::default(),
            rows: Vec::new(),
            places: FxHashMap::default(),
        }
    }

    fn enter(&mut self, block: &Block, class: Class, knows: Knows) {
        let (stack, block_type) = self.stack_and_type(block.alloc);
        let thread = block.thread.map(|id| self.texts.number(thread_name(self.dump, id)));
        let kind =
            Kind { stack, class, block_type, thread, reports: self.reports(block), size: block.usable() };
        let rows = &mut self.rows;
        let at = *self.places.entry(kind).or_insert_with_key(|kind| {
            let (live, allocated) = (Totals::default(), Totals::default());
            rows.push(Row { kind: kind.clone(), live, allocated });
            rows.len() - 1
        });
        let row = &mut rows[at];
        row.allocated.add_weighted(block);
        if knows != Knows::Allocated && !block.freed {
            row.live.add_weighted(block);
        }
    }

    fn stack_and_type(&mut self, trace: Option<TraceId>) -> (u32, Option<TextId>) {
        if let Some(known) = self.traces.get(&trace) {
            return *known;
        }
        let dump = self.dump;
        let frames = trace.map_or_else(Vec::new, |trace| match self.which {
            Frames::All => without_allocator(dump, dump.trace(trace)),
            Frames::Own => without_library(dump, dump.trace(trace)),
        });
        let mut stack: Vec<u32> = frames.iter().map(|parts| self.frame(parts)).collect();
        if stack.is_empty() {
            stack.push(self.frame(&Parts::of_words("(no stack was recorded)")));
        }
        let stack = self.stacks.number(stack.into());
        let block_type = trace.and_then(|trace| match BlockType::of_trace(dump, dump.trace(trace)) {
            BlockType::Known(name) => Some(self.texts.number(name)),
            _ => None,
        });
        self.traces.insert(trace, (stack, block_type));
        (stack, block_type)
    }

    fn frame(&mut self, parts: &Parts<'d>) -> u32 {
        let key = (parts.shown(), parts.file, parts.line, parts.out_of_line);
        let frames = &mut self.frames;
        *self.frame_numbers.entry(key).or_insert_with(|| {
            let next = u32::try_from(frames.len()).unwrap_or(u32::MAX);
            frames.push(HeapFrame {
                function: parts.shown().to_owned(),
                file: parts.file.map(str::to_owned),
                line: parts.line,
                inlined: !parts.out_of_line,
                address: Address::of_text(parts.function)
                    .map(|address| (address.module.to_owned(), address.offset)),
            });
            next
        })
    }

    fn reports(&mut self, block: &Block) -> Reports {
        let Some(traces) = self.dump.reports(block) else { return Reports::default() };
        if let Some(known) = self.reports.get(traces) {
            return known.clone();
        }
        let names = |describe: fn(&ReportSite) -> String| {
            report_names(self.dump, block, describe).unwrap_or_default()
        };
        let paths = names(|site| site.path.clone());
        let fields = names(|site| match (&site.type_name, &site.field) {
            (Some(name), Some(field)) => format!("{name}.{field}"),
            _ => String::new(),
        });
        let texts = &mut self.texts;
        let pair = |(path, field): (String, String)| {
            // A native report stack has the same words for both.
            let has_field = !field.is_empty() && field != path;
            (texts.number(path), has_field.then(|| texts.number(field)))
        };
        let reports: Reports = paths.into_iter().zip(fields).map(pair).collect();
        self.reports.insert(traces, reports.clone());
        reports
    }
}
