//! Gathers the blocks of a dump into rows.

use rustc_hash::FxHashMap;

use super::table::Table;
use super::{Frames, HeapFrame, HeapOptions, Kind, Knows, Reports, Row, StackKind, TextId};
use crate::analysis::{
    BlockType, Class, Parts, Totals, report_names, thread_name, without_allocator, without_library,
};
use crate::read::{Block, Dump, ReportSite, TraceId};
use crate::symbols::Address;

/// What tells frames apart: equal ones of several stacks are one.
type FrameKey<'d> = (&'d str, Option<&'d str>, Option<u32>, bool);

/// Rows while blocks are entered.
pub(super) struct Builder<'d> {
    dump: &'d Dump,
    which: Frames,
    made_of: StackKind,
    pub(super) frames: Vec<HeapFrame>,
    frame_numbers: FxHashMap<FrameKey<'d>, u32>,
    pub(super) stacks: Table<Box<[u32]>>,
    pub(super) scopes: Table<Box<[TextId]>>,
    pub(super) texts: Table<String>,
    /// The number of a scope's names by that of the dump.
    known_scopes: FxHashMap<u16, u32>,
    /// Stack and type of the dump's stacks that were met, in their scopes where those are in the stack.
    traces: FxHashMap<(Option<TraceId>, u16), (u32, Option<TextId>)>,
    /// Reports of blocks that were met.
    reports: FxHashMap<&'d [TraceId], Reports>,
    pub(super) rows: Vec<Row>,
    places: FxHashMap<Kind, usize>,
}

impl<'d> Builder<'d> {
    pub(super) fn new(dump: &'d Dump, options: &HeapOptions) -> Self {
        let mut scopes = Table::default();
        // The first is that of blocks in no scope.
        scopes.number(Box::default());
        Self {
            dump,
            which: options.frames,
            made_of: options.stacks,
            frames: Vec::new(),
            frame_numbers: FxHashMap::default(),
            stacks: Table::default(),
            scopes,
            texts: Table::default(),
            known_scopes: FxHashMap::default(),
            traces: FxHashMap::default(),
            reports: FxHashMap::default(),
            rows: Vec::new(),
            places: FxHashMap::default(),
        }
    }

    pub(super) fn enter(&mut self, block: &Block, class: Class, knows: Knows) {
        let kind = self.kind(block, class);
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

    /// What a block is.
    pub(super) fn kind(&mut self, block: &Block, class: Class) -> Kind {
        let (stack, block_type) = self.stack_and_type(block.alloc, block.scope);
        let thread = block.thread.map(|id| self.texts.number(thread_name(self.dump, id)));
        let scope = self.scope(block.scope);
        let (reports, size) = (self.reports(block), block.usable());
        Kind { stack, class, block_type, thread, scope, reports, size }
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

    /// The names of a scope and of those around it, the outermost first.
    fn scope_names(&self, scope: u16) -> Vec<&'d str> {
        let dump = self.dump;
        dump.extension.as_ref().map(|ours| ours.scope_names(scope)).unwrap_or_default()
    }

    fn stack_and_type(&mut self, trace: Option<TraceId>, scope: u16) -> (u32, Option<TextId>) {
        let scope = if self.made_of == StackKind::Native { 0 } else { scope };
        if let Some(known) = self.traces.get(&(trace, scope)) {
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
        let block_type =
            trace.and_then(|trace| match BlockType::of_trace(dump, dump.trace(trace)) {
                BlockType::Known(name) => Some(self.texts.number(name)),
                _ => None,
            });
        self.traces.insert((trace, scope), (stack, block_type));
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
