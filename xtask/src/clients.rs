//! Checks with real clients. Each says whether it ran and passed, ran and failed, or did not run, and why.

use std::io::Write;
use std::path::Path;

use crate::{Failure, dmd_py};

/// A check by its name; it is handed the words after it.
type Check = (&'static str, fn(&[&str], &mut dyn Write) -> Result<bool, Failure>);

const CHECKS: [Check; 1] =
    [("dmd-py", |args, out| Ok(dmd_py::run(args.first().map(Path::new), out)?))];

/// Runs one check by name, or all. `false` when one has failed.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let wanted = args.first();
    let chosen: Vec<&Check> =
        CHECKS.iter().filter(|(name, _)| wanted.is_none_or(|wanted| wanted == name)).collect();
    if chosen.is_empty() {
        let names: Vec<_> = CHECKS.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "no client is called {}; there are: {}",
            args.join(" "),
            names.join(", ")
        )
        .into());
    }
    let mut all_hold = true;
    for (_, check) in chosen {
        all_hold &= check(args.get(1..).unwrap_or_default(), out)?;
    }
    Ok(all_hold)
}
