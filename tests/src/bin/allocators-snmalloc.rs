//! Exercises every operation of snmalloc under DMD.

use std::process::ExitCode;

use memreport_tests::exercise::{self, Failing};
use snmalloc_rs::SnMalloc;

dmd::global_allocator!(Failing(SnMalloc): Failing<SnMalloc>);

fn main() -> ExitCode {
    exercise::main()
}
