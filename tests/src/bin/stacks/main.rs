//! Takes stacks like a hook, in all unusual places, and compares each with the crate `backtrace`.
//!
//! `stacks check STACKS SEED [PLUGIN PLUGIN]` prints the number of compared stacks by kind, or the
//! first two that differ, and then fails. With `late OPTIONS PLUGIN` in front, the tracker starts
//! with these options while that plugin is loaded. `stacks dump FILE` writes a dump with ten
//! truncated stacks. `stacks time ROUNDS` prints the cost of a stack, in nanoseconds.

mod compare;
mod foreign;
mod paths;
mod plugin;
mod timing;

use std::io::{self, Write};
use std::process::ExitCode;

dmd::global_allocator!();

const USAGE: &str = "stacks [late OPTIONS PLUGIN] check STACKS SEED [PLUGIN PLUGIN] | stacks dump FILE | \
                     stacks time ROUNDS";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::from(2)
        }
    }
}

fn run(words: &[&str]) -> Result<bool, Box<dyn std::error::Error>> {
    let (late, words) = match words {
        ["late", options, plugin, words @ ..] => (Some((options.parse()?, plugin)), words),
        _ => (None, words),
    };
    if let ["check", ..] = words {
        foreign::answer_signals()?;
        // A panic is part of the test, so its message is suppressed.
        std::panic::set_hook(Box::new(|_| ()));
        if let Some((options, plugin)) = late {
            plugin::start_while_loaded(plugin, options)?;
        }
    }
    let out = &mut io::stdout().lock();
    writeln!(out, "unwinder: {}", dmd::__private::unwinder_name())?;
    match words {
        ["check", stacks, seed, plugins @ ..] => {
            let stacks = stacks.parse()?;
            let mut numbers = memreport_workload::Numbers::new(seed.parse()?);
            while compare::compared() < stacks && compare::all_agree() {
                paths::walk_one(&mut numbers);
            }
            if let [first, second] = plugins {
                plugin::check(first, second, out)?;
            }
            Ok(compare::report(out)?)
        }
        ["dump", file] => {
            paths::allocate_deep_down(300);
            let snapshot = memreport::snapshot();
            dmd::Dump::of(&snapshot).ok_or("DMD is asleep")?.save(file)?;
            Ok(true)
        }
        ["time", rounds] => {
            timing::run(rounds.parse()?, out)?;
            Ok(true)
        }
        _ => Err(USAGE.into()),
    }
}
