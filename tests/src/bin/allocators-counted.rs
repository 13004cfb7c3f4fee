//! Exercises every operation of the system's allocator without DMD.

use std::alloc::System;
use std::process::ExitCode;

use memreport_tests::exercise::{self, Failing};

memreport::global_allocator!(Failing(System): Failing<System>);

fn main() -> ExitCode {
    exercise::main()
}
