//! Exercises every operation of mimalloc under DMD.

use std::process::ExitCode;

use memreport_tests::exercise::{self, Failing};
use mimalloc::MiMalloc;

dmd::global_allocator!(Failing(MiMalloc): Failing<MiMalloc>);

fn main() -> ExitCode {
    exercise::main()
}
