//! Benchmarks by name: each prints a table, then a line of JSON for each figure.

pub(crate) mod figure;
pub(crate) mod process;
mod overhead;
mod stacks;
mod show;
mod analyse;
mod measure;
mod record;
mod scan;
mod scopes;
mod census;
pub(crate) mod calibrate;

use std::io::Write;
use std::path::Path;

use crate::failure::Failure;

/// Runs a benchmark by name. Returns `false` when a target is missed.
pub(crate) fn run(name: &str, args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let is_quick = args.contains(&"--quick");
    match name {
        "overhead" => overhead::run(args, out),
        "stacks" => stacks::run(is_quick, out),
        "record" => record::run(args, out),
        "census" => census::run(is_quick, out),
        "scopes" => scopes::run(is_quick, out),
        "retained" => scan::retained::run(args, out),
        "tree" => scan::tree::run(args, out),
        "measure" => measure::run(is_quick, out),
        "show" => show::run(args, out),
        "analyse" => {
            let script = args.iter().find(|word| !word.starts_with("--"));
            analyse::run(script.map(Path::new), out)
        }
        _ => Err(format!(
            "no benchmark is called {name}; there are: overhead, stacks, show, analyse, measure, record, retained, tree, scopes, census"
        )
        .into()),
    }
}
