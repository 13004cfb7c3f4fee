//! Tests of the commands in one program, since each program of tests takes seconds to build.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

#[cfg(unix)]
mod cargo;
mod fuzz;
mod hostile_files;
#[cfg(unix)]
mod peers;
mod serve;
mod surface;
mod terminal_text;
