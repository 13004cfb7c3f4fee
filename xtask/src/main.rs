//! Every check as one command.

mod bench_show;
mod firefox;

use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["clients", "firefox", ..] => firefox::run(&args[2..], &mut io::stdout()),
        ["bench", "show", ..] => bench_show::run(&args[2..], &mut io::stdout()),
        _ => Err("known are: clients firefox [--seed N] [--cases N] [--keep DIR]; bench show [--quick] [--capture FILE]".into()),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            // Standard error may be closed as well; then there is nobody to tell.
            let _ = writeln!(io::stderr(), "xtask: {error}");
            ExitCode::from(2)
        }
    }
}
