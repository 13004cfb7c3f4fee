//! Allocation functions, recognised by words in the text of a frame.

use super::tracker::names_tracker;

/// The words of dmd.py: plain substrings of the whole text, so a path with such a word counts too.
const OF_DMD_PY: [&str; 10] = [
    "malloc",
    "calloc",
    "realloc",
    "memalign",
    "operator new(",
    "operator new[](",
    "g_slice_alloc",
    "???",
    "mozilla::dmd::AllocCallback",
    "mozilla::dmd::StackTrace::Get",
];

/// The words for Rust: the shims, `alloc::alloc`, the growth of vectors, and boxes. An inlined
/// function is only recognised by its file.
const OF_RUST: [&str; 11] = [
    "__rust_alloc",
    "__rustc::",
    "__rg_alloc",
    "__rdl_alloc",
    "alloc::alloc::",
    "alloc::raw_vec::",
    "alloc::boxed::Box",
    "core::alloc::global::GlobalAlloc",
    "/library/alloc/src/alloc.rs:",
    "/library/alloc/src/raw_vec",
    "/library/alloc/src/boxed.rs:",
];

/// Returns whether a frame is an allocation function or the tracker, by its text.
pub(crate) fn is_allocation(frame: &str) -> bool {
    OF_DMD_PY.iter().chain(&OF_RUST).any(|word| frame.contains(word)) || names_tracker(frame)
}
