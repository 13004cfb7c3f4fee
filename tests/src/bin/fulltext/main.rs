//! A full-text index over a folder of source or text files, as an example of a program that reports
//! its heap.
//!
//! Worker threads read the files, split identifiers into words, and build partial indexes. These
//! are merged: numbered words, packed lists of positions, packed texts. Then the workers answer
//! queries, ranked by BM25, through caches. With `--snapshot`, or while DMD is awake, a memory
//! report is saved before the program ends.
//!
//! All of its heap is reported under `explicit/fulltext/`. `--plant` breaks this on purpose, once
//! for each kind of fault that DMD finds; see `faults.rs`.

mod settings;
mod folder;
mod words;
mod varint;
mod terms;
mod postings;
mod documents;
mod index;
mod lru;
mod search;
mod answers;
mod queue;
mod workers;
mod faults;
mod program;

use std::process::ExitCode;

dmd::global_allocator!();

fn main() -> ExitCode {
    program::main()
}
