//! Trims stacks: removes innermost frames of the allocator, the tracker and libraries.

use super::allocation::is_allocation;
use super::parts::Parts;
use crate::read::{Dump, FrameId};
use crate::symbols::Address;

/// Returns the number of frames in front that are the allocator's or the tracker's.
fn allocator_frames(frames: &[Parts<'_>]) -> usize {
    frames.iter().rposition(Parts::is_allocator_entry).map_or(0, |at| at + 1)
}

/// Returns the number of frames in front that are the libraries', the allocator's or the tracker's.
pub(crate) fn library_frames(frames: &[Parts<'_>]) -> usize {
    let inner = allocator_frames(frames);
    inner + frames[inner..].iter().take_while(|parts| parts.is_library()).count()
}

/// Takes the frames of a stack apart.
pub(crate) fn parts<'a>(dump: &'a Dump, trace: &[FrameId]) -> Vec<Parts<'a>> {
    trace.iter().map(|frame| Parts::of(&dump.frames[frame.index()])).collect()
}

/// Returns the frames of a stack without the allocation functions, the allocator and the tracker in
/// front. A stack that has no other frames is returned whole.
pub(crate) fn without_allocator<'a>(dump: &'a Dump, trace: &[FrameId]) -> Vec<Parts<'a>> {
    let frames = parts(dump, trace);
    let inner = allocator_frames(&frames);
    // The text of a frame without a symbol proves nothing.
    let is_allocation = |(parts, frame): &(&Parts<'_>, &FrameId)| {
        Address::of_text(parts.function).is_none()
            && is_allocation(&dump.frames[frame.index()].text)
    };
    let rest = frames.iter().zip(trace).skip(inner).skip_while(is_allocation);
    let kept: Vec<Parts<'_>> = rest.map(|(parts, _)| *parts).collect();
    if kept.is_empty() { frames } else { kept }
}

/// Returns the frames of a stack that are not the libraries'. A stack that has no other frames
/// keeps those outside of the allocator.
///
/// Frames of the standard library in between (iterators, calls of closures, starts of threads) add
/// nothing to the frames around them, and those beyond `main` are the same in every stack.
pub(crate) fn without_library<'a>(dump: &'a Dump, trace: &[FrameId]) -> Vec<Parts<'a>> {
    let frames = parts(dump, trace);
    let rest = frames[library_frames(&frames)..].iter().filter(|parts| !parts.is_library());
    let kept: Vec<Parts<'_>> = rest.copied().collect();
    match frames.get(allocator_frames(&frames)..) {
        Some(all @ [_, ..]) if kept.is_empty() => all.to_vec(),
        _ if kept.is_empty() => frames,
        _ => kept,
    }
}

#[cfg(test)]
mod tests {
    use super::without_library;
    use crate::read::read_slice;

    #[test]
    fn a_stack_of_libraries_begins_behind_the_allocator() {
        let dump = read_slice(
            br##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "live"},
                "blockList": [{"req": 1, "alloc": "A"}], "traceTable": {"A": ["B", "C", "D", "E"]},
                "frameTable": {"B": "#00: dmd::track::sites::here (dmd/src/track/sites.rs:7)",
                    "C": "#00: __rust_alloc (dmd/src/track/hooks.rs:9)",
                    "D": "#00: alloc::alloc::alloc (/rustc/1/library/alloc/src/alloc.rs:9)",
                    "E": "#00: std::rt::lang_start (/rustc/1/library/std/src/rt.rs:9)"}}"##,
        );
        let dump = dump.expect("it is a dump");
        let trace = dump.trace(dump.blocks.at(0).kind.alloc.expect("it has a stack"));
        let shown = without_library(&dump, trace);
        assert_eq!(shown.first().map(|parts| parts.function), Some("alloc::alloc::alloc"));
    }
}
