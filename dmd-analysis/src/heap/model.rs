//! The heap of a dump: its rows, and the tables that they refer to.

use std::collections::BTreeSet;
use std::time::SystemTime;

use rustc_hash::FxHashMap;

use super::accounts::{Accounts, Outside};
use super::build::Builder;
use super::{HeapOptions, SampleLabel};
use crate::analysis::{self, Class, NoReports, Totals};
use crate::read::{Dump, Mode, Module, SpanIds, Sum};

/// The heap of a dump, or of a moment of a recording.
#[derive(Debug)]
pub struct Heap {
    pub(crate) process: Process,
    pub(crate) amounts: Amounts,
    /// True if the dump contains reports.
    has_reports: bool,
    pub(crate) only: Option<Class>,
    /// The average number of bytes between two samples, if the heap is sampled.
    pub(crate) sample_bytes: Option<u64>,
    pub(crate) taken: Option<SystemTime>,
    /// The labels of each sample of a pprof profile.
    pub(crate) labels: Vec<SampleLabel>,
    pub(crate) frames: Vec<HeapFrame>,
    /// Numbers of frames, innermost first. No stack is empty.
    pub(crate) stacks: Vec<Box<[u32]>>,
    /// The site of each stack: the innermost frame of the program's own code.
    pub(crate) sites: Vec<Option<u32>>,
    /// The names of scopes, outermost first. The first list is empty: it stands for no scope.
    pub(crate) scopes: Vec<Box<[TextId]>>,
    /// Types, threads, reporters and names of scopes.
    pub(crate) texts: Vec<String>,
    /// Largest first. The order is the same for the same blocks.
    pub(crate) rows: Vec<Row>,
    modules: Vec<Module>,
    outside: Outside,
}

/// The process that wrote the dump.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    /// The path of its program, or a text in parentheses if it is unknown.
    pub(crate) program: String,
    pub(crate) pid: u32,
    pub(crate) uptime_ms: u64,
    /// The tracker's mode, in the words of `$DMD`.
    pub(crate) mode: String,
}

impl Process {
    /// Returns the program's name without directories.
    pub(crate) fn name(&self) -> &str {
        self.program.rsplit('/').next().unwrap_or_default()
    }
}

/// The amounts of a row that the dump contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amounts {
    /// Live blocks.
    Live,
    /// All blocks that were allocated, live or freed.
    Allocated,
    /// Both.
    Both,
}

/// A function at a place of its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeapFrame {
    pub(crate) function: String,
    /// The function as trees show it: `c_leak (libkeeping.so)` for one in a library.
    pub(crate) name: String,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    /// True if it was inlined into the next frame.
    pub(crate) inlined: bool,
    /// The address of a frame that was not symbolicated.
    pub(crate) address: Option<ModuleOffset>,
    /// The file name of the library with the code, unless it is the program itself.
    pub(crate) library: Option<String>,
}

/// An address as an offset in the file of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModuleOffset {
    pub(crate) module: String,
    pub(crate) offset: u64,
}

impl HeapFrame {
    /// Returns file and line, if they are known: `src/main.rs:12`.
    pub(crate) fn place(&self) -> Option<String> {
        Some(format!("{}:{}", self.file.as_ref()?, self.line?))
    }

    /// Returns the frame as valgrind's tools write it: `0x0: main (src/main.rs:12)`.
    ///
    /// Only frames that could not be symbolicated have an address.
    pub(crate) fn valgrind_text(&self) -> String {
        let function = &self.function;
        match (&self.file, self.line, &self.address) {
            (_, _, Some(ModuleOffset { module, offset })) => {
                format!("{offset:#x}: ??? (in {module})")
            }
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
    /// The live blocks.
    pub(crate) live: Totals,
    /// The live and the freed blocks, as far as the dump contains them.
    pub(crate) allocated: Totals,
}

/// The amounts of the blocks from one stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StackAmounts {
    pub(crate) stack: u32,
    pub(crate) live: Totals,
    pub(crate) allocated: Totals,
}

/// A report that counts a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Report {
    pub(crate) path: TextId,
    /// The field by which a derived type reports it.
    pub(crate) field: Option<TextId>,
}

/// The properties that alike blocks share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    pub(crate) stack: u32,
    pub(crate) class: Class,
    pub(crate) block_type: Option<TextId>,
    pub(crate) thread: Option<TextId>,
    /// The number of the scope.
    pub(crate) scope: u32,
    /// The span that the scope is in, if that is known and wanted.
    pub(crate) span: Option<SpanIds>,
    /// The reports that count the blocks, first report first.
    pub(crate) reports: Box<[Report]>,
    /// The usable bytes of one block.
    pub(crate) size: u64,
    /// The lower bound of the age in milliseconds, a power of two; `None` if it is unknown or not
    /// wanted.
    pub(crate) age_ms: Option<u64>,
}

impl Heap {
    /// Gathers the heap of a dump, whose frames should be symbolicated.
    ///
    /// # Errors
    ///
    /// Returns an error if the options keep one class of blocks and the dump contains no reports.
    pub fn new(dump: &Dump, options: &HeapOptions) -> Result<Self, NoReports> {
        let mode = analysis::mode(dump);
        let has_reports = mode == Mode::DarkMatter;
        if options.only.is_some() && !has_reports {
            return Err(NoReports);
        }
        let mut builder = Builder::new(dump, options);
        let amounts = match (dump.invocation.mode, &dump.extension) {
            (Mode::Cumulative, Some(_)) => Amounts::Both,
            (Mode::Cumulative, None) => Amounts::Allocated,
            _ => Amounts::Live,
        };
        for block in dump.blocks.added_up() {
            let class = analysis::class(mode, dump.reports(&block));
            if options.only.is_none_or(|only| only == class) {
                builder.add(&block, class, amounts);
            }
        }
        let untracked = dump.extension.as_ref().map_or(Sum::default(), |ours| ours.untracked);
        if options.only.is_none() && untracked != Sum::default() {
            builder.add_untracked(untracked);
        }
        let mut heap = Heap::built(dump, builder, options);
        heap.amounts = amounts;
        heap.has_reports = has_reports;
        heap.sort();
        Ok(heap)
    }

    /// Returns the rows of a builder, unsorted, as a heap of live blocks without reports.
    pub(super) fn built(dump: &Dump, builder: Builder<'_>, options: &HeapOptions) -> Self {
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
            amounts: Amounts::Live,
            has_reports: false,
            only: options.only,
            sample_bytes: ours.and_then(|ours| ours.sampled).map(|sampled| sampled.sample_bytes),
            taken: options.taken,
            labels: options.labels.clone(),
            frames: builder.frames,
            stacks: builder.stacks.values().to_vec(),
            sites: builder.sites,
            scopes: builder.scopes.values().to_vec(),
            texts: builder.texts.values().to_vec(),
            rows: builder.rows,
            modules: ours.map_or_else(Vec::new, |ours| ours.modules.clone()),
            outside: ours.map_or_else(Outside::default, |ours| Outside {
                heap_allocated: ours.heap_allocated,
                untracked: if options.only.is_none() { ours.untracked } else { Sum::default() },
                allocated_during: ours.allocated_during.bytes,
                is_estimate: ours.sampled.is_some(),
                tracker: ours.tracker_bytes,
            }),
        }
    }

    /// Returns the amount of all blocks: of live ones, or in a dump of all allocations, of those.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.rows.iter().fold(Totals::default(), |sum, row| sum.plus(&self.amount(row)))
    }

    /// Returns how the blocks add up to the bytes that the allocator has allocated.
    #[must_use]
    pub fn accounts(&self) -> Accounts {
        // One class of blocks has no such sum, and neither have blocks that are freed.
        let is_all = self.only.is_none() && self.amounts == Amounts::Live;
        let listed = self.totals().minus(&self.untracked());
        self.outside.accounts(listed, is_all)
    }

    /// Returns the amount of untracked blocks among [`totals`](Self::totals).
    #[must_use]
    pub fn untracked(&self) -> Totals {
        let rows = self.rows.iter().filter(|row| row.kind.class == Class::Untracked);
        rows.fold(Totals::default(), |sum, row| sum.plus(&self.amount(row)))
    }

    /// Returns the names of the types of all blocks; `[unknown]` for blocks without a known type.
    #[must_use]
    pub fn types(&self) -> BTreeSet<&str> {
        let name = |row: &Row| row.kind.block_type.map_or("[unknown]", |name| self.text(name));
        self.rows.iter().map(name).collect()
    }

    /// Returns the amount of a row, for formats that have one amount.
    pub(crate) fn amount(&self, row: &Row) -> Totals {
        self.either(row.live, row.allocated)
    }

    /// Returns `live`, or `allocated` if the dump counts freed blocks too, for formats that have
    /// one amount.
    pub(crate) fn either(&self, live: Totals, allocated: Totals) -> Totals {
        if self.amounts == Amounts::Live { live } else { allocated }
    }

    /// Returns an adjective for the blocks of [`amount`](Self::amount).
    pub(crate) fn amount_name(&self) -> &'static str {
        if self.amounts == Amounts::Live { "live" } else { "allocated" }
    }

    /// Returns the classes to show apart: none if the dump contains no reports.
    pub(crate) fn classes(&self) -> &'static [Class] {
        let is_all = self.has_reports && self.only.is_none();
        let is_late = self.rows.iter().any(|row| row.kind.class == Class::Untracked);
        let classes =
            &[Class::Unreported, Class::OnceReported, Class::TwiceReported, Class::Untracked];
        match (is_all, is_late) {
            (true, true) => classes,
            (true, false) => &classes[..3],
            (false, _) => &[],
        }
    }

    /// Returns the frames of a stack, innermost first.
    pub(crate) fn stack(&self, stack: u32) -> impl DoubleEndedIterator<Item = &HeapFrame> {
        self.stacks[stack as usize].iter().map(|&frame| &self.frames[frame as usize])
    }

    /// Returns the names of a scope, the outermost first; none for no scope.
    pub(crate) fn scope_names(&self, scope: u32) -> impl Iterator<Item = &str> {
        self.scopes[scope as usize].iter().map(|&name| self.text(name))
    }

    /// Returns the names of a scope as a text, `request > search`; `None` for no scope.
    pub(crate) fn scope(&self, scope: u32) -> Option<String> {
        let names: Vec<&str> = self.scope_names(scope).collect();
        (!names.is_empty()).then(|| names.join(" > "))
    }

    pub(crate) fn text(&self, text: TextId) -> &str {
        &self.texts[text as usize]
    }

    /// Returns the amounts of each stack, in the order of rows.
    pub(crate) fn by_stack(&self) -> Vec<StackAmounts> {
        let mut sums: Vec<StackAmounts> = Vec::new();
        let mut places: FxHashMap<u32, usize> = FxHashMap::default();
        let none = Totals::default();
        for Row { kind, live, allocated } in &self.rows {
            let at = *places.entry(kind.stack).or_insert_with(|| {
                sums.push(StackAmounts { stack: kind.stack, live: none, allocated: none });
                sums.len() - 1
            });
            let sum = &mut sums[at];
            sum.live = sum.live.plus(live);
            sum.allocated = sum.allocated.plus(allocated);
        }
        sums
    }

    /// Returns the load bias of a module; 0 if it is unknown.
    pub(crate) fn load_bias(&self, path: &str) -> u64 {
        let base = self.module(path).and_then(|module| module.base.as_deref());
        base.and_then(|base| u64::from_str_radix(base, 16).ok()).unwrap_or(0)
    }

    /// Returns the build id of a module; empty if it is unknown.
    pub(crate) fn build_id(&self, path: &str) -> &str {
        self.module(path).and_then(|module| module.build_id.as_deref()).unwrap_or_default()
    }

    fn module(&self, path: &str) -> Option<&Module> {
        self.modules.iter().find(|module| module.path == path)
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
