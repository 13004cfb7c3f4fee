//! Tests of the commands in one program, since each program of tests takes seconds to build.

mod agent;
mod cli;
mod symbols;

dmd::global_allocator!();
