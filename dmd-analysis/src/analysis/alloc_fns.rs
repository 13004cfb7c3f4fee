//! Allocation functions, known by words in the text of a frame.

/// What dmd.py drops: plain substrings of the whole text, so a path that holds such a word counts too.
const C: [&str; 10] = [
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

/// What Rust adds: the shims, `alloc::alloc`, the growth of vectors, boxes, and the tracker's own hooks. A function that
/// was inlined has only its file to be known by.
const RUST: [&str; 12] = [
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
    "dmd::track::",
];

pub(crate) fn is_allocation(frame: &str) -> bool {
    C.iter().chain(&RUST).any(|word| frame.contains(word))
}
