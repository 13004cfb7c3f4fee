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
    functions: Table<Function>,
    frames: Table<Frame>,
    stacks: Table<Stack>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Function {
    name: u32,
    source: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Frame {
    function: u32,
    line: Option<u32>,
    category: u32,
    inlined: bool,
}

/// A stack by its innermost frame and the stack of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Stack {
    prefix: Option<u32>,
    frame: u32,
}

impl Tables {
    /// Returns the number of a string.
    pub(super) fn string(&mut self, text: String) -> u32 {
        self.strings.number(text)
    }

    /// Returns the number of the stack of these frames, outermost first, in a category.
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
            let function = self.functions.number(Function { name, source });
            let (line, inlined) = (frame.line, frame.inlined);
            let frame = self.frames.number(Frame { function, line, category, inlined });
            prefix = Some(self.stacks.number(Stack { prefix, frame }));
        }
        prefix
    }

    /// Returns the tables in the form of version 60.
    pub(super) fn into_json(self) -> Value {
        let (frames, functions) = (self.frames.values(), self.functions.values());
        let (stacks, sources) = (self.stacks.values(), self.sources.values());
        let nothing = |length: usize| vec![Value::Null; length];
        json!({
            "stackTable": {
                "prefix": column(stacks, |stack| stack.prefix),
                "frame": column(stacks, |stack| stack.frame),
                "length": stacks.len(),
            },
            "frameTable": {
                "address": column(frames, |_| -1),
                "inlineDepth": self.inline_depths(),
                "category": column(frames, |frame| frame.category),
                "subcategory": column(frames, |_| 0),
                "func": column(frames, |frame| frame.function),
                "nativeSymbol": nothing(frames.len()),
                "innerWindowID": column(frames, |_| 0),
                "line": column(frames, |frame| frame.line),
                "column": nothing(frames.len()),
                "length": frames.len(),
            },
            "funcTable": {
                "name": column(functions, |function| function.name),
                "isJS": column(functions, |_| false),
                "relevantForJS": column(functions, |_| false),
                "resource": column(functions, |_| -1),
                "source": column(functions, |function| function.source),
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

    /// Returns 0 for functions that were called, and 1 for inlined ones.
    ///
    /// A frame may be inlined at different depths in several stacks, so the depth itself is not
    /// written.
    fn inline_depths(&self) -> Vec<u32> {
        column(self.frames.values(), |frame| u32::from(frame.inlined))
    }
}

fn column<T, V>(rows: &[T], value: impl FnMut(&T) -> V) -> Vec<V> {
    rows.iter().map(value).collect()
}
