//! Puts the symbols into the dump: a frame with an address becomes one frame for each function there.

use std::collections::HashMap;
use std::sync::Arc;

use super::module::Symbols;
use crate::dump::read::{Dump, Frame, FrameId, Symbol};

/// `symbols` has an entry for each frame of the dump.
pub(super) fn rewrite(dump: &mut Dump, symbols: &[Option<Symbols>]) {
    let mut frames: Vec<Frame> = Vec::with_capacity(dump.frames.len());
    let mut known = HashMap::new();
    let mut replacements: Vec<Vec<FrameId>> = Vec::with_capacity(dump.frames.len());
    for (frame, symbols) in std::mem::take(&mut dump.frames).into_iter().zip(symbols) {
        let Some(symbols) = symbols else {
            replacements.push(vec![add(&mut frames, frame)]);
            continue;
        };
        let ids = symbols.iter().map(|symbol| {
            *known.entry(identity(symbol)).or_insert_with(|| {
                let frame = Frame { text: text(symbol).into(), symbol: Some(Box::new(symbol.clone())) };
                add(&mut frames, frame)
            })
        });
        replacements.push(ids.collect());
    }
    for trace in &mut dump.traces {
        let replaced = trace.iter().flat_map(|frame| &replacements[frame.index()]).copied();
        *trace = replaced.collect();
    }
    dump.frames = frames;
}

/// Equal for symbols that are shown alike; two frames for one function do no harm.
fn identity(symbol: &Symbol) -> (usize, usize, Option<u32>, bool, bool) {
    let place = |text: &Arc<str>| text.as_ptr().addr();
    let file = symbol.file.as_ref().map_or(0, place);
    (place(&symbol.function), file, symbol.line, symbol.inlined, symbol.folded)
}

fn add(frames: &mut Vec<Frame>, frame: Frame) -> FrameId {
    let id = FrameId(u32::try_from(frames.len()).unwrap_or(u32::MAX));
    frames.push(frame);
    id
}

/// The text of a frame in the form of Mozilla's fixed stacks.
fn text(symbol: &Symbol) -> String {
    let function = &symbol.function;
    match (&symbol.file, symbol.line) {
        (Some(file), Some(line)) => format!("#00: {function} ({file}:{line})"),
        (Some(file), None) => format!("#00: {function} ({file})"),
        _ => format!("#00: {function}"),
    }
}
