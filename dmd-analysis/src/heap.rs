//! The heap of a dump as viewers have it: rows of blocks that are alike, with what they stand for.
//!
//! What a sampled block stands for is rounded here, once, so that all formats show the same numbers.

mod accounts;
mod build;
pub mod history;
pub(crate) mod table;
pub mod browse;
pub mod growth;
mod columns;

#[cfg(test)]
pub(crate) mod tests;

use std::cmp::{Ordering, Reverse};
use std::time::SystemTime;

use rustc_hash::FxHashMap;

use crate::analysis::{self, Class, NoReports, Totals};
use crate::read::{Dump, Mode, Module, Sum};
pub use accounts::Accounts;
use build::Builder;
pub use columns::columns;

/// What of a dump is exported, and how.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HeapOptions {
    /// What stacks are made of.
    pub stacks: StackKind,
    /// Which functions stacks have.
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

/// What stacks are made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StackKind {
    /// The functions that were called.
    #[default]
    Native,
    /// The scopes of the program, as it names them: what Chrome calls a pseudo stack.
    Scopes,
    /// Functions below the scopes that they were called in.
    ScopesThenNative,
}

/// The heap of a dump, or of a moment of a recording.
#[derive(Debug)]
pub struct Heap {
    pub(crate) process: Process,
    pub(crate) knows: Knows,
    /// Whether the dump says who reports what.
    has_reports: bool,
    pub(crate) only: Option<Class>,
    /// The bytes between two samples, on average, if it is a sample.
    pub(crate) sample_bytes: Option<u64>,
    pub(crate) taken: Option<SystemTime>,
    pub(crate) frames: Vec<HeapFrame>,
    /// Frames by number, innermost first. None is empty.
    pub(crate) stacks: Vec<Box<[u32]>>,
    /// The names of scopes, outermost first, by number. The first is empty: that of blocks in no scope.
    pub(crate) scopes: Vec<Box<[TextId]>>,
    /// Types, threads, reporters and names of scopes.
    pub(crate) texts: Vec<String>,
    /// Largest first, and in the same order for the same blocks.
    pub(crate) rows: Vec<Row>,
    modules: Vec<Module>,
    outside: Outside,
}

/// What of the process's memory is in no row.
#[derive(Debug, Clone, Copy, Default)]
struct Outside {
    heap_allocated: Option<u64>,
    untracked: Sum,
    tracker: Option<u64>,
}

/// The process that wrote the dump.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    /// The path of its program, or words that say that it is unknown.
    pub(crate) program: String,
    pub(crate) pid: u32,
    pub(crate) uptime_ms: u64,
    /// What was kept, as `$DMD` calls it.
    pub(crate) mode: String,
}

impl Process {
    /// The program's name without directories.
    pub(crate) fn name(&self) -> &str {
        self.program.rsplit('/').next().unwrap_or_default()
    }
}

/// Which amounts of a row are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Knows {
    /// What lives.
    Live,
    /// All that was allocated, not how much of it lives.
    Allocated,
    Both,
}

/// A function at a place of its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeapFrame {
    pub(crate) function: String,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    /// Whether it was inlined into the next frame.
    pub(crate) inlined: bool,
    /// Where it is, if nothing else is known of it: module and offset in its file.
    pub(crate) address: Option<(String, u64)>,
}

impl HeapFrame {
    /// `src/main.rs:12`, if it is known.
    pub(crate) fn place(&self) -> Option<String> {
        Some(format!("{}:{}", self.file.as_ref()?, self.line?))
    }

    /// As valgrind's tools write frames, and their viewers take them apart: `0x0: main (src/main.rs:12)`. Only frames that
    /// could not be looked up have their address still.
    pub(crate) fn valgrind_text(&self) -> String {
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
pub(crate) type TextId = u32;

/// Blocks that are alike.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) kind: Kind,
    /// Those that live.
    pub(crate) live: Totals,
    /// Those and the ones that were given back, where the dump has them.
    pub(crate) allocated: Totals,
}

/// Who reports a block, first report first: the path, and the field where a derived type led there.
pub(crate) type Reports = Box<[(TextId, Option<TextId>)]>;

/// What makes blocks alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    pub(crate) stack: u32,
    pub(crate) class: Class,
    pub(crate) block_type: Option<TextId>,
    pub(crate) thread: Option<TextId>,
    /// The number of the scope.
    pub(crate) scope: u32,
    /// Who reports them.
    pub(crate) reports: Reports,
    /// Usable bytes of one block.
    pub(crate) size: u64,
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
        let mut builder = Builder::new(dump, options);
        let knows = match (dump.invocation.mode, &dump.extension) {
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
        let mut heap = Heap::of(dump, builder, options);
        heap.knows = knows;
        heap.has_reports = has_reports;
        heap.sort();
        Ok(heap)
    }

    /// What was gathered of a dump, in no order, as a heap of live blocks that nobody reports.
    fn of(dump: &Dump, builder: Builder<'_>, options: &HeapOptions) -> Self {
        let ours = dump.extension.as_ref();
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
        Heap {
            process,
            knows: Knows::Live,
            has_reports: false,
            only: options.only,
            sample_bytes: ours.and_then(|ours| ours.sampled).map(|sampled| sampled.sample_bytes),
            taken: options.taken,
            frames: builder.frames,
            stacks: builder.stacks.values().to_vec(),
            scopes: builder.scopes.values().to_vec(),
            texts: builder.texts.values().to_vec(),
            rows: builder.rows,
            modules: ours.map_or_else(Vec::new, |ours| ours.modules.clone()),
            outside: ours.map_or_else(Outside::default, |ours| Outside {
                heap_allocated: ours.heap_allocated,
                untracked: ours.untracked,
                tracker: ours.tracker_bytes,
            }),
        }
    }

    /// Largest rows first.
    fn sort(&mut self) {
        let ranks = self.frame_ranks();
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_by(|a, b| self.order(a, b, &ranks));
        self.rows = rows;
    }

    /// What all blocks amount to: those that live, or where the dump is of all that was allocated, those.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.rows.iter().fold(Totals::default(), |sum, row| sum.plus(&self.amount(row)))
    }

    /// How the blocks come to what the allocator has handed out.
    #[must_use]
    pub fn accounts(&self) -> Accounts {
        let Outside { heap_allocated, untracked, tracker } = self.outside;
        // Estimates come to no exact sum, neither does a part of the blocks, nor what was given back.
        let is_all =
            self.sample_bytes.is_none() && self.only.is_none() && self.knows == Knows::Live;
        Accounts {
            listed: self.totals(),
            untracked,
            heap_allocated: heap_allocated.filter(|_| is_all),
            tracker_bytes: tracker,
        }
    }

    /// The amount of a row where a format has room for one.
    pub(crate) fn amount(&self, row: &Row) -> Totals {
        self.either(row.live, row.allocated)
    }

    /// Of two amounts the one for which there is room.
    pub(crate) fn either(&self, live: Totals, allocated: Totals) -> Totals {
        if self.knows == Knows::Live { live } else { allocated }
    }

    /// What [`amount`](Self::amount) is, in a word.
    pub(crate) fn amount_name(&self) -> &'static str {
        if self.knows == Knows::Live { "live" } else { "allocated" }
    }

    /// The classes that are worth showing apart: none if the dump does not say who reports what.
    pub(crate) fn classes(&self) -> &'static [Class] {
        let is_all = self.has_reports && self.only.is_none();
        if is_all { &[Class::Unreported, Class::OnceReported, Class::TwiceReported] } else { &[] }
    }

    /// The frames of a stack, innermost first.
    pub(crate) fn stack(&self, stack: u32) -> impl DoubleEndedIterator<Item = &HeapFrame> {
        self.stacks[stack as usize].iter().map(|&frame| &self.frames[frame as usize])
    }

    /// The names of a scope from the outermost: `request > search`. Nothing stands for no scope.
    pub(crate) fn scope(&self, scope: u32) -> Option<String> {
        let names: Vec<&str> =
            self.scopes[scope as usize].iter().map(|&name| self.text(name)).collect();
        (!names.is_empty()).then(|| names.join(" > "))
    }

    pub(crate) fn text(&self, text: TextId) -> &str {
        &self.texts[text as usize]
    }

    /// The amounts of each stack, in the order of rows: live ones, and allocated ones.
    pub(crate) fn by_stack(&self) -> Vec<(u32, Totals, Totals)> {
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
    pub(crate) fn module(&self, path: &str) -> (u64, &str) {
        let module = self.modules.iter().find(|module| module.path == path);
        let base = module.and_then(|module| u64::from_str_radix(module.base.as_deref()?, 16).ok());
        let build_id = module.and_then(|module| module.build_id.as_deref());
        (base.unwrap_or(0), build_id.unwrap_or_default())
    }

    /// The place of each frame among all when they are sorted by their texts.
    fn frame_ranks(&self) -> Vec<u32> {
        let mut sorted: Vec<(&HeapFrame, usize)> = self.frames.iter().zip(0..).collect();
        let text = |frame: &'_ HeapFrame| (frame.line, frame.inlined);
        sorted.sort_by(|(a, _), (b, _)| {
            (&a.function, &a.file, text(a)).cmp(&(&b.function, &b.file, text(b)))
        });
        let mut ranks = vec![0; sorted.len()];
        for (rank, (_, frame)) in (0..).zip(sorted) {
            ranks[frame] = rank;
        }
        ranks
    }

    /// Largest first; blocks of one size by what they are.
    fn order(&self, a: &Row, b: &Row, ranks: &[u32]) -> Ordering {
        let size = |row: &Row| Reverse((self.amount(row).usable(), self.amount(row).blocks));
        let frames = |row: &Row| {
            self.stacks[row.kind.stack as usize].iter().map(|frame| ranks[*frame as usize])
        };
        let text = |id: Option<TextId>| id.map(|id| self.text(id));
        let rest = |row: &Row| {
            let Kind { class, block_type, thread, scope, size, .. } = row.kind;
            (class.name(), text(block_type), text(thread), self.scope(scope), size)
        };
        let reports = |row: &Row| {
            let reports = row.kind.reports.iter();
            reports.map(|(path, field)| (self.text(*path), text(*field))).collect::<Vec<_>>()
        };
        size(a)
            .cmp(&size(b))
            .then_with(|| frames(a).cmp(frames(b)))
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
