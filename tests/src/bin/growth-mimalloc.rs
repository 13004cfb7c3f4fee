//! A program that grows for a known reason, on mimalloc.

#[path = "growth/mapping.rs"]
mod mapping;
#[path = "growth/program.rs"]
mod program;

use std::process::ExitCode;

dmd::global_allocator!(mimalloc::MiMalloc);

fn main() -> ExitCode {
    program::main()
}
