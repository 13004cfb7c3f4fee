//! Gathers the blocks of a dump into rows.

use rustc_hash::FxHashMap;

use super::table::Table;
use super::{Frames, HeapFrame, Kind, Knows, Reports, Row, TextId};
use crate::analysis::{
    BlockType, Class, Parts, Totals, report_names, thread_name, without_allocator, without_library,
};
use crate::dump::read::{Block, Dump, ReportSite, TraceId};
use crate::symbols::Address;

/// What tells frames apart: equal ones of several stacks are one.
type FrameKey<'d> = (&'d str, Option<&'d str>, Option<u32>, bool);

/// Rows while blocks are entered.
pub(super) struct Builder<'d> {
    dump: &'d Dump,
    which: Frames,
    pub(super) frames: Vec<HeapFrame>,
    frame_numbers: FxHashMap<FrameKey<'d>, u32>,
    pub(super) stacks: Table<Box<[u32]>>,
    pub(super) scopes: Table<Box<[TextId]>>,
    pub(super) texts: Table<String>,
    /// The number of a scope's names by that of the dump.
    known_scopes: FxHashMap<u16, u32>,
    /// Stack and type of the dump's stacks that were met.
    traces: FxHashMap<Option<TraceId>, (u32, Option<TextId>)>,
    /// Reports of blocks that were met.
    reports: FxHashMap<&'d [TraceId], Reports>,
    pub(super) rows: Vec<Row>,
    places: FxHashMap<Kind, usize>,
}

impl<'d> Builder<'d> {
    pub(super) fn new(dump: &'d Dump, which: Frames) -> Self {
        let mut scopes = Table::default();
        // The first is that of blocks in no scope.
        scopes.number(Box::default());
        Self {
            dump,
            which,
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
        let (stack, block_type) = self.stack_and_type(block.alloc);
        let thread = block.thread.map(|id| self.texts.number(thread_name(self.dump, id)));
        let kind = Kind {
            stack,
            scope: self.scope(block.scope),
            class,
            block_type,
            thread,
            reports: self.reports(block),
            size: block.usable(),
        };
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

    fn scope(&mut self, scope: u16) -> u32 {
        if let Some(known) = self.known_scopes.get(&scope) {
            return *known;
        }
        let names = self.dump.extension.as_ref().map(|extension| extension.scope_names(scope));
        let texts = &mut self.texts;
        let names = names.unwrap_or_default().into_iter().map(|name| texts.number(name.to_owned()));
        let number = self.scopes.number(names.collect());
        self.known_scopes.insert(scope, number);
        number
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
        let block_type =
            trace.and_then(|trace| match BlockType::of_trace(dump, dump.trace(trace)) {
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
