//! Writes symbols into a dump: a frame with an address becomes one frame for each function there.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::address::Address;
use super::module::Symbols;
use crate::read::{Dump, Frame, FrameId, MOST_FRAMES, Symbol};

/// The most frames of a symbolicated stack, of which inlined functions are a part.
const MOST_SYMBOLICATED: usize = 4 * MOST_FRAMES;

/// Replaces the frames of a dump. `symbols` has an entry for each frame.
pub(super) fn rewrite(dump: &mut Dump, symbols: &[Option<Symbols>]) {
    let mut frames: Vec<Frame> = Vec::with_capacity(dump.frames.len());
    let mut known = FxHashMap::default();
    let mut modules = FxHashSet::default();
    // The new frames, and for each old frame the end of its new ones.
    let mut ids: Vec<FrameId> = Vec::with_capacity(dump.frames.len());
    let mut ends = Vec::with_capacity(dump.frames.len());
    for (frame, symbols) in std::mem::take(&mut dump.frames).into_iter().zip(symbols) {
        match symbols {
            None => ids.push(add(&mut frames, frame)),
            Some(symbols) => {
                let address = Address::parse(&frame.text);
                let module = address.map(|address| interned(&mut modules, address.module));
                ids.extend(symbols.iter().map(|symbol| {
                    *known.entry(identity(symbol, module.as_ref())).or_insert_with(|| {
                        let symbol = Symbol { module: module.clone(), ..symbol.clone() };
                        let text = text(&symbol).into();
                        add(&mut frames, Frame { text, symbol: Some(Box::new(symbol)) })
                    })
                }));
            }
        }
        ends.push(ids.len());
    }
    for trace in &mut dump.traces {
        let replaced = trace.iter().flat_map(|frame| {
            let start = frame.index().checked_sub(1).map_or(0, |before| ends[before]);
            &ids[start..ends[frame.index()]]
        });
        *trace = replaced.copied().take(MOST_SYMBOLICATED).collect();
    }
    dump.frames = frames;
}

/// Returns a key that is only equal for symbols that are printed alike. Duplicate frames are
/// harmless.
fn identity(
    symbol: &Symbol,
    module: Option<&Arc<str>>,
) -> (usize, usize, Option<u32>, bool, bool, usize) {
    let place = |text: &Arc<str>| text.as_ptr().addr();
    let [file, module] = [symbol.file.as_ref(), module].map(|text| text.map_or(0, place));
    (place(&symbol.function), file, symbol.line, symbol.inlined, symbol.folded, module)
}

/// Returns the one copy of a module's path.
fn interned(modules: &mut FxHashSet<Arc<str>>, path: &str) -> Arc<str> {
    let known = modules.get(path).cloned();
    known.unwrap_or_else(|| {
        let path: Arc<str> = path.into();
        modules.insert(Arc::clone(&path));
        path
    })
}

fn add(frames: &mut Vec<Frame>, frame: Frame) -> FrameId {
    let id = FrameId(u32::try_from(frames.len()).unwrap_or(u32::MAX));
    frames.push(frame);
    id
}

/// Returns the text of a frame in the form of Mozilla's `fix_stacks`.
fn text(symbol: &Symbol) -> String {
    let function = &symbol.function;
    match (&symbol.file, symbol.line) {
        (Some(file), Some(line)) => format!("#00: {function} ({file}:{line})"),
        (Some(file), None) => format!("#00: {function} ({file})"),
        _ => format!("#00: {function}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read_slice;

    #[test]
    fn equal_symbols_are_one_frame_and_others_are_apart() {
        let text = r##"{"version":5,"invocation":{"dmdEnvVar":null,"mode":"live"},
            "blockList":[{"req":1,"alloc":"A"}],"traceTable":{"A":["A","B","C","D"]},
            "frameTable":{"A":"#00: a","B":"#00: b","C":"#00: c","D":"#00: d"}}"##;
        let mut dump = read_slice(text.as_bytes()).unwrap();
        let [grow, push, file]: [Arc<str>; 3] = ["grow", "push", "vec.rs"].map(Into::into);
        let symbol = |function: &Arc<str>, file: Option<&Arc<str>>, line, inlined| Symbol {
            function: function.clone(),
            name: None,
            file: file.cloned(),
            line,
            inlined,
            folded: false,
            module: None,
        };
        let first = symbol(&grow, Some(&file), Some(7), true);
        let symbols: [Option<Symbols>; 4] = [
            Some([first.clone(), symbol(&push, Some(&file), Some(7), true)].into()),
            Some([first, symbol(&grow, Some(&file), Some(8), true)].into()),
            None,
            Some([symbol(&grow, Some(&file), None, true), symbol(&grow, None, None, false)].into()),
        ];
        rewrite(&mut dump, &symbols);
        let trace = &dump.traces[dump.blocks.at(0).kind.alloc.unwrap().index()];
        let shown: Vec<&str> =
            trace.iter().map(|frame| &*dump.frames[frame.index()].text).collect();
        let expected = [
            "#00: grow (vec.rs:7)",
            "#00: push (vec.rs:7)",
            "#00: grow (vec.rs:7)",
            "#00: grow (vec.rs:8)",
            "#00: c",
            "#00: grow (vec.rs)",
            "#00: grow",
        ];
        assert_eq!(shown, expected);
        assert_eq!(dump.frames.len(), expected.len() - 1, "the first symbol is there twice");
    }
}
