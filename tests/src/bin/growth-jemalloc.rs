//! A program that grows for a known reason, on jemalloc.

#[path = "growth/mapping.rs"]
mod mapping;
#[path = "growth/program.rs"]
mod program;

use std::process::ExitCode;

dmd::global_allocator!(tikv_jemallocator::Jemalloc);

fn main() -> ExitCode {
    program::main()
}
