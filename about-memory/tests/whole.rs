//! Tests of the commands in one program, since each program of tests takes seconds to build.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

mod cargo;
mod fuzz;
mod hostile_files;
mod peers;
mod serve;
mod surface;
mod terminal_text;
