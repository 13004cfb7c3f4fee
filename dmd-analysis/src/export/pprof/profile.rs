//! The tables of a profile, and its samples.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::Values;
use crate::analysis::{Class, Totals};
use crate::heap::table::Table;
use crate::heap::{Amounts, Heap, HeapFrame, ModuleOffset, Row};
use crate::read::SpanIds;

/// A location: the functions at one address, innermost first, or the address itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Location {
    /// Functions and lines.
    Lines(Box<[Line]>),
    /// An address in a module.
    Address {
        /// The number of the module.
        module: u32,
        offset: u64,
    },
}

/// A line of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Line {
    /// The number of the function.
    pub(super) function: u32,
    /// 0 if it is unknown.
    pub(super) line: u32,
}

/// A function, by the numbers of its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Function {
    pub(super) name: u32,
    pub(super) file: u32,
}

/// A text label, by the numbers of its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Label {
    pub(super) key: u32,
    pub(super) value: u32,
}

/// The identity of a sample. Equal samples of two dumps are one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    /// The number of the list of locations.
    pub(super) stack: u32,
    pub(super) labels: Vec<Label>,
    /// The usable bytes of one block.
    pub(super) size: u64,
}

/// A profile under construction.
pub(super) struct Profile {
    pub(super) amounts: Amounts,
    pub(super) opens_on: Values,
    pub(super) strings: Table<String>,
    pub(super) functions: Table<Function>,
    pub(super) locations: Table<Location>,
    /// Lists of locations, innermost first.
    pub(super) stacks: Table<Box<[u32]>>,
    /// The numbers in `stacks` of the heaps' stacks that occurred before.
    known: FxHashMap<StackOfHeap, u32>,
    pub(super) modules: Table<String>,
    /// The greatest offset that occurs in each module.
    pub(super) ends: BTreeMap<u32, u64>,
    pub(super) keys: Table<Key>,
    /// The values of each key: allocated blocks and bytes, live blocks and bytes.
    pub(super) values: Vec<[i64; 4]>,
}

/// A stack of one of the heaps.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct StackOfHeap {
    /// The address of the heap identifies it.
    heap: usize,
    stack: u32,
}

impl Profile {
    pub(super) fn new(heap: &Heap, opens_on: Values) -> Self {
        let mut strings = Table::default();
        // The first string is the empty one.
        strings.number(String::new());
        Self {
            amounts: heap.amounts,
            opens_on,
            strings,
            functions: Table::default(),
            locations: Table::default(),
            stacks: Table::default(),
            known: FxHashMap::default(),
            modules: Table::default(),
            ends: BTreeMap::new(),
            keys: Table::default(),
            values: Vec::new(),
        }
    }

    /// Adds the blocks of a row, or subtracts them if `sign` is -1.
    pub(super) fn sample(&mut self, heap: &Heap, row: &Row, sign: i64) {
        let place = StackOfHeap { heap: std::ptr::from_ref(heap).addr(), stack: row.kind.stack };
        let stack = match self.known.get(&place) {
            Some(stack) => *stack,
            None => {
                let locations = self.stack(heap, row.kind.stack);
                let stack = self.stacks.number(locations);
                self.known.insert(place, stack);
                stack
            }
        };
        let labels = self.labels(heap, row);
        let key = Key { stack, labels, size: row.kind.size };
        let at = self.keys.number(key) as usize;
        if at == self.values.len() {
            self.values.push([0; 4]);
        }
        let numbers = |totals: &Totals| [totals.blocks, totals.usable()];
        let [live, allocated] = [numbers(&row.live), numbers(&row.allocated)];
        for (value, number) in self.values[at].iter_mut().zip(allocated.into_iter().chain(live)) {
            let number = i64::try_from(number).unwrap_or(i64::MAX);
            *value = value.saturating_add(number.saturating_mul(sign));
        }
    }

    /// Returns the locations of a stack, innermost first. Inlined functions share the location of
    /// their caller.
    fn stack(&mut self, heap: &Heap, stack: u32) -> Box<[u32]> {
        let mut locations = Vec::new();
        let mut lines: Vec<Line> = Vec::new();
        for frame in heap.stack(stack) {
            if let Some(ModuleOffset { module, offset }) = &frame.address {
                let offset = *offset;
                let module = self.modules.number(module.clone());
                let end = self.ends.entry(module).or_default();
                *end = (*end).max(offset);
                locations.push(self.locations.number(Location::Address { module, offset }));
                continue;
            }
            let function = self.function(frame);
            lines.push(Line { function, line: frame.line.unwrap_or(0) });
            if !frame.inlined {
                let lines = Location::Lines(std::mem::take(&mut lines).into());
                locations.push(self.locations.number(lines));
            }
        }
        if !lines.is_empty() {
            locations.push(self.locations.number(Location::Lines(lines.into())));
        }
        locations.into()
    }

    fn function(&mut self, frame: &HeapFrame) -> u32 {
        let name = self.strings.number(frame.function.clone());
        let file = self.strings.number(frame.file.clone().unwrap_or_default());
        self.functions.number(Function { name, file })
    }

    fn labels(&mut self, heap: &Heap, row: &Row) -> Vec<Label> {
        let kind = &row.kind;
        let reported = match kind.class {
            Class::Unreported => Some("no"),
            Class::OnceReported => Some("once"),
            Class::TwiceReported => Some("twice"),
            Class::Live | Class::Cumulative | Class::Untracked => None,
        };
        let text = |id: Option<u32>| id.map(|id| heap.text(id));
        let scope = heap.scope(kind.scope);
        let [trace, span] =
            [SpanIds::trace_text, SpanIds::span_text].map(|text| kind.span.as_ref().map(text));
        let single = [
            ("thread", text(kind.thread)),
            ("scope", scope.as_deref()),
            ("type", text(kind.block_type)),
            ("reported", reported),
            ("trace_id", trace.as_deref()),
            ("span_id", span.as_deref()),
        ];
        let constant = heap.labels.iter().map(|label| (label.key(), Some(label.value())));
        let reports = kind.reports.iter().flat_map(|report| {
            [("reporter", Some(heap.text(report.path))), ("field", text(report.field))]
        });
        let mut label = |(key, value): (&str, Option<&str>)| {
            let [key, value] = [key, value?].map(|text| self.strings.number(text.to_owned()));
            Some(Label { key, value })
        };
        single.into_iter().chain(reports).chain(constant).filter_map(&mut label).collect()
    }
}
