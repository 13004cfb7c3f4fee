//! The full-text index on the system's allocator alone, for timing beside the one with DMD.

#[path = "fulltext/settings.rs"]
mod settings;
#[path = "fulltext/folder.rs"]
mod folder;
#[path = "fulltext/words.rs"]
mod words;
#[path = "fulltext/varint.rs"]
mod varint;
#[path = "fulltext/terms.rs"]
mod terms;
#[path = "fulltext/postings.rs"]
mod postings;
#[path = "fulltext/documents.rs"]
mod documents;
#[path = "fulltext/index.rs"]
mod index;
#[path = "fulltext/lru.rs"]
mod lru;
#[path = "fulltext/search.rs"]
mod search;
#[path = "fulltext/answers.rs"]
mod answers;
#[path = "fulltext/queue.rs"]
mod queue;
#[path = "fulltext/workers.rs"]
mod workers;
#[path = "fulltext/faults.rs"]
mod faults;
#[path = "fulltext/program.rs"]
mod program;

use std::process::ExitCode;

fn main() -> ExitCode {
    program::main()
}
