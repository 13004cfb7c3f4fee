//! Stress tests: threads and clients that load one part of the system for a given time.

use std::io::Write;

use crate::failure::Failure;

mod exhaustion;
mod hooks;
mod leaks;
mod live;
mod log;
mod snapshots;
mod table;

/// Runs `cargo xtask stress [live|log|hooks|exhaustion] [SECONDS]`, or `leaks [N]`, or
/// `snapshots [N]`. Returns `false` when an invariant breaks.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    match args {
        ["live"] => live::run(None, out),
        ["live", seconds] => live::run(Some(seconds), out),
        ["log"] => log::run(None, out),
        ["log", seconds] => log::run(Some(seconds), out),
        ["exhaustion"] => exhaustion::run(None, out),
        ["exhaustion", seconds] => exhaustion::run(Some(seconds), out),
        ["hooks"] => hooks::run(None, out),
        ["hooks", seconds] => hooks::run(Some(seconds), out),
        ["leaks"] => leaks::run(None, out),
        ["leaks", count] => leaks::run(Some(count), out),
        ["snapshots"] => snapshots::run(None, out),
        ["snapshots", count] => snapshots::run(Some(count), out),
        [] => table::run(None, out),
        [seconds] => table::run(Some(seconds), out),
        _ => {
            Err("usage: cargo xtask stress [live|log|hooks|exhaustion] [SECONDS], or leaks|snapshots [N]"
                .into())
        }
    }
}
