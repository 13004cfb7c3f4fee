//! Names the functions that threads were in.

use std::collections::BTreeMap;

use super::Symboliser;
use crate::read::Dump;

/// Gives each frame of a thread's stack its functions, as far as the modules' files tell them.
pub(super) fn name_frames(symboliser: &mut Symboliser, dump: &mut Dump) {
    let mut wanted: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for frame in dump.extension.iter().flat_map(|ours| &ours.frames) {
        wanted.entry(frame.module.clone()).or_default().push(frame.offset);
    }
    let threads = symboliser.options.threads;
    let mut named: Vec<Vec<String>> = Vec::new();
    for (path, offsets) in &mut wanted {
        offsets.sort_unstable();
        offsets.dedup();
        symboliser.module(dump, path).look_up(offsets, threads);
    }
    for frame in dump.extension.iter().flat_map(|ours| &ours.frames) {
        let symbols = symboliser.module(dump, &frame.module).symbols(frame.offset);
        let symbols = symbols.iter().flat_map(|symbols| symbols.iter());
        named.push(symbols.map(|symbol| symbol.function.to_string()).collect());
    }
    let frames = dump.extension.iter_mut().flat_map(|ours| &mut ours.frames);
    for (frame, functions) in frames.zip(named) {
        frame.functions = functions;
    }
}
