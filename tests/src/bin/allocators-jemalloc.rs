//! Exercises every operation of jemalloc under DMD.

use std::process::ExitCode;

use memreport_tests::exercise::{self, Failing};
use tikv_jemallocator::Jemalloc;

dmd::global_allocator!(Failing(Jemalloc): Failing<Jemalloc>);

fn main() -> ExitCode {
    exercise::main()
}
