//! Programs that do what a tracker might not survive: `programs CASE PATH`, where dumps go to paths
//! with this prefix.
//!
//! Each plants blocks of unique sizes, and leaves a dump while they live.

mod planted;
mod threads;
mod forks;
mod ends;
mod panics;
mod interrupts;
mod library;
mod plugins;
mod stacks;
mod streams;
mod sandbox;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

dmd::global_allocator!();

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A case: its name and its function.
type Case = (&'static str, fn(&Path) -> Result<(), Failure>);

const CASES: [Case; 27] = [
    ("threads", threads::many),
    ("destructors", threads::destructors),
    ("bare-threads", threads::bare),
    ("small-threads", threads::small),
    ("fork", forks::quiet),
    ("fork-busy", forks::busy),
    ("exec", forks::exec),
    ("exit-nested", ends::exit_nested),
    ("exit-thread", ends::exit_on_thread),
    ("abort", ends::abort),
    ("no-dump", ends::no_dump),
    ("panic", panics::unwinds),
    ("catch", panics::caught),
    ("panic-thread", panics::of_a_thread),
    ("signals", interrupts::storm),
    ("plugin", plugins::plain),
    ("snapshot-at-load", plugins::snapshot_at_load),
    ("second-tracker", plugins::second_tracker),
    ("own-stack", stacks::own),
    ("sandbox", sandbox::fails),
    ("sandbox-kills", sandbox::kills),
    ("overflow", stacks::overflow),
    ("overflow-thread", stacks::overflow_of_a_thread),
    ("deep", stacks::deep),
    ("closed-streams", streams::closed),
    ("long-stream", streams::long),
    ("quiet", planted::leave),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match words.as_slice() {
        [case, path, ..] => match CASES.iter().find(|(name, _)| name == case) {
            Some((_, run)) => run(&PathBuf::from(path)),
            None => Err(format!("no case is called {case}").into()),
        },
        _ => Err("programs CASE PATH".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed too, only the exit code remains.
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}
