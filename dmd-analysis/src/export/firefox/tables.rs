//! The tables that all threads of a profile share: strings, functions, frames, stacks.

use serde_json::{Value, json};

use crate::heap::HeapFrame;
use crate::heap::table::Table;

/// Shared tables under construction.
#[derive(Debug, Default)]
pub(super) struct Tables {
    strings: Table<String>,
    /// File names.
    sources: Table<u32>,
    /// Name and source.
    functions: Table<(u32, Option<u32>)>,
    /// Function, line, category, and whether it is inlined.
    frames: Table<(u32, Option<u32>, u32, bool)>,
    /// Caller and frame.
    stacks: Table<(Option<u32>, u32)>,
}

impl Tables {
    /// The number of a string.
    pub(super) fn string(&mut self, text: String) -> u32 {
        self.strings.number(text)
    }

    /// The stack of these frames, outermost first, in a category.
    pub(super) fn stack<'h>(
        &mut self,
        frames: impl Iterator<Item = &'h HeapFrame>,
        category: u32,
    ) -> Option<u32> {
        let mut prefix = None;
        for frame in frames {
            let name = self.strings.number(frame.function.clone());
            let source = frame.file.as_ref().map(|file| {
                let file = self.strings.number(file.clone());
                self.sources.number(file)
            });
            let function = self.functions.number((name, source));
            let frame = self.frames.number((function, frame.line, category, frame.inlined));
            prefix = Some(self.stacks.number((prefix, frame)));
        }
        prefix
    }

    /// The tables as version 60 has them.
    pub(super) fn into_json(self) -> Value {
        let (frames, functions) = (self.frames.values(), self.functions.values());
        let (stacks, sources) = (self.stacks.values(), self.sources.values());
        let nothing = |length: usize| vec![Value::Null; length];
        json!({
            "stackTable": {
                "prefix": column(stacks, |(prefix, _)| *prefix),
                "frame": column(stacks, |(_, frame)| *frame),
                "length": stacks.len(),
            },
            "frameTable": {
                "address": column(frames, |_| -1),
                "inlineDepth": self.inline_depths(),
                "category": column(frames, |(_, _, category, _)| *category),
                "subcategory": column(frames, |_| 0),
                "func": column(frames, |(function, ..)| *function),
                "nativeSymbol": nothing(frames.len()),
                "innerWindowID": column(frames, |_| 0),
                "line": column(frames, |(_, line, ..)| *line),
                "column": nothing(frames.len()),
                "length": frames.len(),
            },
            "funcTable": {
                "name": column(functions, |(name, _)| *name),
                "isJS": column(functions, |_| false),
                "relevantForJS": column(functions, |_| false),
                "resource": column(functions, |_| -1),
                "source": column(functions, |(_, source)| *source),
                "lineNumber": nothing(functions.len()),
                "columnNumber": nothing(functions.len()),
                "length": functions.len(),
            },
            "resourceTable": { "lib": [], "name": [], "host": [], "type": [], "length": 0 },
            "nativeSymbols": { "libIndex": [], "address": [], "name": [], "functionSize": [], "length": 0 },
            "sources": {
                "id": nothing(sources.len()),
                "filename": sources,
                "length": sources.len(),
            },
            "stringArray": self.strings.values(),
        })
    }

    /// 0 for functions that were called, 1 for those that were inlined, however deep: one frame may be so in several stacks.
    fn inline_depths(&self) -> Vec<u32> {
        column(self.frames.values(), |(.., inlined)| u32::from(*inlined))
    }
}

fn column<T, V>(rows: &[T], value: impl FnMut(&T) -> V) -> Vec<V> {
    rows.iter().map(value).collect()
}
