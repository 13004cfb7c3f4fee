//! Every check as one command.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

mod bench_analyse;
mod dmd_py;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut out = io::stdout();
    let result = match arguments[..] {
        ["clients", "dmd-py"] => dmd_py::run(None, &mut out),
        ["clients", "dmd-py", script] => dmd_py::run(Some(&PathBuf::from(script)), &mut out),
        ["bench", "analyse"] => bench_analyse::run(None, &mut out),
        ["bench", "analyse", script] => bench_analyse::run(Some(&PathBuf::from(script)), &mut out),
        _ => {
            let _ = writeln!(
                io::stderr(),
                "usage: cargo xtask clients dmd-py [PATH] | bench analyse [PATH]"
            );
            return ExitCode::FAILURE;
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(io::stderr(), "xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
