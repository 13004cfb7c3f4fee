//! A full-text index over a folder of source or text files: a program with a heap worth looking at, and an example of how one
//! reports it.
//!
//! Worker threads read the files, take identifiers apart into words, and build partial indexes, which are merged: numbered
//! words, packed lists of where each occurs, the packed texts. Then they answer queries, ranked by BM25, through caches. With
//! `--snapshot`, or while DMD is awake, a memory report is saved before the program ends.
//!
//! All it owns is reported under `explicit/fulltext/`. `--plant` breaks that on purpose, once for each kind of fault that DMD
//! finds; see `faults.rs`.

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
