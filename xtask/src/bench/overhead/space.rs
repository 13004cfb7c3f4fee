//! Costs of tracking other than time: memory per live block, and the dump of ten million blocks.

use std::path::Path;
use std::process::Command;

use super::programs::Programs;
use super::rounds::Effort;
use super::variants::{Kind, Program};
use crate::bench::figure::Figure;
use crate::bench::process::reason;
use crate::failure::Failure;

/// The number of live blocks, of 64 bytes each.
const BLOCKS: &str = "400000";

/// Measures the bytes beyond those that the allocator takes.
pub(crate) fn memory(programs: &Programs, effort: Effort) -> Result<Vec<Figure>, Failure> {
    let table = [
        ("64 bytes, glibc", Program::System, Program::Dmd, 25.0),
        ("64 bytes, jemalloc", Program::Jemalloc, Program::DmdJemalloc, 40.0),
    ];
    let mut figures = Vec::new();
    for (name, plain, tracked, target) in table {
        let path = |program| {
            programs.of(program, Kind::Churn(1)).unwrap_or(Err("there is no such program".into()))
        };
        let extra = || -> Result<f64, String> {
            let plain = number(path(plain)?, &["live", BLOCKS])?;
            Ok(number(path(tracked)?, &["live", BLOCKS])? - plain)
        };
        let extra: Result<Vec<f64>, String> = (0..effort.few).map(|_| extra()).collect();
        figures.push(match extra {
            Ok(extra) => Figure::new(name, extra).at_most(target, "bytes"),
            Err(why) => Figure::not_run(name, why).at_most(target, "bytes"),
        });
    }
    Ok(figures)
}

/// Measures a snapshot that walks ten million blocks, and the size of its dump.
pub(crate) fn dump(programs: &Programs, effort: Effort) -> Result<Vec<Figure>, Failure> {
    let name = "10 M blocks walked and written";
    let seconds: Result<Vec<f64>, String> =
        (0..effort.few).map(|_| number(&programs.dump, &["10000000"])).collect();
    Ok(vec![match seconds {
        Ok(seconds) => Figure::new(name, seconds).at_most(1.0, "s"),
        Err(why) => Figure::not_run(name, why).at_most(1.0, "s"),
    }])
}

/// Returns the number that a program prints, with a table of its blocks but no stacks.
fn number(program: &Path, args: &[&str]) -> Result<f64, String> {
    let mut command = Command::new(program);
    let output = command.args(args).env("DMD", "--stacks=none").output();
    let output = output.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let message = String::from_utf8_lossy(&output.stderr);
    text.trim()
        .parse()
        .map_err(|_| reason(&message).unwrap_or_else(|| "it printed nothing".to_owned()))
}
