//! Gathers the blocks of a dump into rows.

use rustc_hash::FxHashMap;

use super::model::{Amounts, HeapFrame, Kind, ModuleOffset, Report, Row, TextId};
use super::table::Table;
use super::{Frames, HeapOptions, StackKind};
use crate::analysis::{
    BlockType, Class, Parts, Totals, UNTRACKED, report_names, thread_name, without_allocator,
    without_library,
};
use crate::read::{Block, Dump, ReportSite, Sum, TraceId};
use crate::symbols::Address;

/// The properties by which frames of several stacks are one.
#[derive(PartialEq, Eq, Hash)]
struct FrameKey<'d> {
    function: &'d str,
    file: Option<&'d str>,
    line: Option<u32>,
    out_of_line: bool,
    library: Option<&'d str>,
}

/// A stack of the dump, in the scope that is part of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct ScopedTrace {
    trace: Option<TraceId>,
    scope: u16,
}

/// The stack and the type of blocks.
#[derive(Clone, Copy)]
struct StackAndType {
    stack: u32,
    block_type: Option<TextId>,
}

/// The rows of a heap while blocks are added.
pub(super) struct Builder<'d> {
    dump: &'d Dump,
    which: Frames,
    made_of: StackKind,
    pub(super) frames: Vec<HeapFrame>,
    frame_numbers: FxHashMap<FrameKey<'d>, u32>,
    pub(super) stacks: Table<Box<[u32]>>,
    /// The frame that is the site of each stack.
    pub(super) sites: Vec<Option<u32>>,
    by_age: bool,
    by_span: bool,
    pub(super) scopes: Table<Box<[TextId]>>,
    pub(super) texts: Table<String>,
    /// The numbers of the lists of names, by the dump's numbers of scopes.
    known_scopes: FxHashMap<u16, u32>,
    /// The stacks of the dump that were looked up.
    traces: FxHashMap<ScopedTrace, StackAndType>,
    /// The reports that were looked up.
    reports: FxHashMap<&'d [TraceId], Box<[Report]>>,
    pub(super) rows: Vec<Row>,
    places: FxHashMap<Kind, usize>,
}

impl<'d> Builder<'d> {
    pub(super) fn new(dump: &'d Dump, options: &HeapOptions) -> Self {
        let mut scopes = Table::default();
        // The first stands for no scope.
        scopes.number(Box::default());
        Self {
            dump,
            which: options.frames,
            made_of: options.stacks,
            frames: Vec::new(),
            frame_numbers: FxHashMap::default(),
            stacks: Table::default(),
            sites: Vec::new(),
            by_age: options.ages,
            by_span: options.spans,
            scopes,
            texts: Table::default(),
            known_scopes: FxHashMap::default(),
            traces: FxHashMap::default(),
            reports: FxHashMap::default(),
            rows: Vec::new(),
            places: FxHashMap::default(),
        }
    }

    /// Adds a block to the row of its kind.
    pub(super) fn add(&mut self, block: &Block<'_>, class: Class, amounts: Amounts) {
        let kind = self.kind(block, class);
        let rows = &mut self.rows;
        let at = *self.places.entry(kind).or_insert_with_key(|kind| {
            let (live, allocated) = (Totals::default(), Totals::default());
            rows.push(Row { kind: kind.clone(), live, allocated });
            rows.len() - 1
        });
        let row = &mut rows[at];
        row.allocated.add_weighted(block);
        if amounts != Amounts::Allocated && !block.kind.freed {
            row.live.add_weighted(block);
        }
    }

    /// Adds the untracked blocks as a row of their own. Their requested bytes are unknown.
    pub(super) fn add_untracked(&mut self, untracked: Sum) {
        let frame = self.frame(&Parts::of_words(UNTRACKED));
        let totals = untracked.into();
        let kind = Kind {
            stack: self.stacks.number([frame].into()),
            class: Class::Untracked,
            block_type: None,
            thread: None,
            scope: 0,
            span: None,
            reports: Box::default(),
            size: untracked.bytes.checked_div(untracked.blocks).unwrap_or_default(),
            age_ms: None,
        };
        self.sites.resize(self.stacks.values().len(), None);
        self.rows.push(Row { kind, live: totals, allocated: totals });
    }

    /// Returns the kind of a block.
    pub(super) fn kind(&mut self, block: &Block<'_>, class: Class) -> Kind {
        let StackAndType { stack, block_type } =
            self.stack_and_type(block.kind.alloc, block.kind.scope);
        let thread = block.kind.thread.map(|id| self.texts.number(thread_name(self.dump, id)));
        let scope = self.scope(block.kind.scope);
        let ours = self.dump.extension.as_ref().filter(|_| self.by_span);
        let span = ours.and_then(|ours| ours.span_ids(block.kind.scope));
        let (reports, size) = (self.reports(block), block.usable());
        let age_ms = block.kind.age_ms.filter(|_| self.by_age).map(octave);
        Kind { stack, class, block_type, thread, scope, span, reports, size, age_ms }
    }

    fn scope(&mut self, scope: u16) -> u32 {
        if let Some(known) = self.known_scopes.get(&scope) {
            return *known;
        }
        let names = self.scope_names(scope);
        let texts = &mut self.texts;
        let names = names.into_iter().map(|name| texts.number(name.to_owned())).collect();
        let number = self.scopes.number(names);
        self.known_scopes.insert(scope, number);
        number
    }

    /// Returns the names of a scope and of those around it, the outermost first.
    fn scope_names(&self, scope: u16) -> Vec<&'d str> {
        let dump = self.dump;
        dump.extension.as_ref().map(|ours| ours.scope_names(scope)).unwrap_or_default()
    }

    fn stack_and_type(&mut self, trace: Option<TraceId>, scope: u16) -> StackAndType {
        let scope = if self.made_of == StackKind::Native { 0 } else { scope };
        let scoped = ScopedTrace { trace, scope };
        if let Some(known) = self.traces.get(&scoped) {
            return *known;
        }
        let dump = self.dump;
        let frames = trace.map_or_else(Vec::new, |trace| match self.which {
            _ if self.made_of == StackKind::Scopes => Vec::new(),
            Frames::All => without_allocator(dump, dump.trace(trace)),
            Frames::Own => without_library(dump, dump.trace(trace)),
        });
        let mut stack: Vec<u32> = frames.iter().map(|parts| self.frame(parts)).collect();
        let mut names = self.scope_names(scope);
        match self.made_of {
            StackKind::Scopes if names.is_empty() => names.push("(in no scope)"),
            StackKind::Native | StackKind::ScopesThenNative if stack.is_empty() => {
                stack.push(self.frame(&Parts::of_words("(no stack was recorded)")));
            }
            _ => {}
        }
        if self.made_of != StackKind::Native {
            stack.extend(names.iter().rev().map(|name| self.frame(&Parts::of_words(name))));
        }
        let stack = self.stacks.number(stack.into());
        let has_functions = self.made_of != StackKind::Scopes;
        let own = trace.filter(|_| has_functions).and_then(|trace| {
            without_library(dump, dump.trace(trace)).into_iter().find(Parts::is_own)
        });
        let own = own.map(|parts| self.frame(&parts));
        // Stacks that differ in frames of the allocator alone are one, with the first one's site.
        if self.sites.len() < self.stacks.values().len() {
            self.sites.push(own);
        }
        let block_type =
            trace.and_then(|trace| match BlockType::of_trace(dump, dump.trace(trace)) {
                BlockType::Known(name) => Some(self.texts.number(name)),
                _ => None,
            });
        let found = StackAndType { stack, block_type };
        self.traces.insert(scoped, found);
        found
    }

    fn frame(&mut self, parts: &Parts<'d>) -> u32 {
        let Parts { file, line, out_of_line, .. } = *parts;
        let library = parts.module.and_then(|module| library_name(self.dump, module));
        let key = FrameKey { function: parts.shown(), file, line, out_of_line, library };
        let frames = &mut self.frames;
        *self.frame_numbers.entry(key).or_insert_with(|| {
            let next = u32::try_from(frames.len()).unwrap_or(u32::MAX);
            frames.push(HeapFrame {
                function: parts.shown().to_owned(),
                name: named(parts.shown(), library),
                file: parts.file.map(str::to_owned),
                line: parts.line,
                inlined: !parts.out_of_line,
                address: Address::of_text(parts.function).map(|Address { module, offset }| {
                    ModuleOffset { module: module.to_owned(), offset }
                }),
                library: library.map(str::to_owned),
            });
            next
        })
    }

    fn reports(&mut self, block: &Block<'_>) -> Box<[Report]> {
        let Some(traces) = self.dump.reports(block) else { return Box::default() };
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
        let report = |(path, field): (String, String)| {
            // A native report stack has one name for both.
            let has_field = !field.is_empty() && field != path;
            Report { path: texts.number(path), field: has_field.then(|| texts.number(field)) }
        };
        let reports: Box<[Report]> = paths.into_iter().zip(fields).map(report).collect();
        self.reports.insert(traces, reports.clone());
        reports
    }
}

/// Returns the file name of a module, if it is not the program itself.
fn library_name<'m>(dump: &Dump, module: &'m str) -> Option<&'m str> {
    let program = dump.extension.as_ref()?.program.as_deref();
    (program != Some(module)).then(|| module.rsplit('/').next().unwrap_or(module))
}

/// Returns a function with its library, if it is in one.
fn named(function: &str, library: Option<&str>) -> String {
    library.map_or_else(|| function.to_owned(), |library| format!("{function} ({library})"))
}

/// Returns the largest power of two up to this number; 0 for 0.
fn octave(age_ms: u64) -> u64 {
    age_ms.checked_ilog2().map_or(0, |power| 1 << power)
}
