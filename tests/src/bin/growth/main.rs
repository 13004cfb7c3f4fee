//! A program that grows for a known reason, on the system's allocator.

mod mapping;
mod program;

use std::process::ExitCode;

dmd::global_allocator!();

fn main() -> ExitCode {
    program::main()
}
