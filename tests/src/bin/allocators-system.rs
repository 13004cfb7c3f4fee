//! Exercises every operation of the system's allocator under DMD.

use std::process::ExitCode;

use memreport_tests::exercise::{self, Failing};
use std::alloc::System;

dmd::global_allocator!(Failing(System): Failing<System>);

fn main() -> ExitCode {
    exercise::main()
}
