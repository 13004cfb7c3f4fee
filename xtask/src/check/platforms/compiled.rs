//! Systems whose programs cannot be linked here: they are compiled up to the linker, and nothing is
//! run.
//!
//! `cargo check` would not do: it sees neither assembly nor the names of sections.

use std::io::Write;

use super::{cargo_to, lacks_target};
use crate::failure::Failure;

/// A system, and the code that is compiled for it.
pub(super) struct Compiled {
    pub(super) name: &'static str,
    targets: &'static [&'static str],
    packages: &'static [&'static str],
}

pub(super) const COMPILED: [Compiled; 1] = [Compiled {
    name: "macos",
    targets: &["aarch64-apple-darwin", "x86_64-apple-darwin"],
    packages: &["memreport", "memreport-dmd", "memreport-analysis"],
}];

/// Compiles the libraries, their tests and their examples for each target. Returns whether all
/// compile without a warning.
pub(super) fn run(system: &Compiled, out: &mut dyn Write) -> Result<bool, Failure> {
    let (name, packages) = (system.name, system.packages.join(", "));
    let mut holds = true;
    for target in system.targets {
        if let Some(missing) = lacks_target(target) {
            writeln!(out, "{name}: not run: {missing}")?;
            continue;
        }
        let mut cargo = cargo_to(target, &["build", "--lib", "--tests", "--examples"]);
        // A linker that does nothing, and a folder in place of the system's libraries.
        let variable = target.to_uppercase().replace('-', "_");
        cargo.env(format!("CARGO_TARGET_{variable}_LINKER"), "true").env("SDKROOT", "/usr");
        for package in system.packages {
            cargo.args(["--package", package]);
        }
        let output = cargo.output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        let faults = faults(&text);
        let compiles = output.status.success() && faults == 0;
        if compiles {
            writeln!(out, "{name}: {target}: compiled, not run ({packages})")?;
        } else {
            writeln!(out, "{text}\n{name}: {target}: FAILED: {faults} warnings and errors")?;
        }
        holds &= compiles;
    }
    Ok(holds)
}

/// Counts the warnings and errors that cargo prints, and not their sums.
fn faults(text: &str) -> usize {
    let is_fault = |line: &&str| line.starts_with("warning") || line.starts_with("error");
    text.lines().filter(is_fault).filter(|line| !line.contains(" generated ")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_and_errors_are_counted() {
        let text = "   Compiling a v1.0.0\nwarning: unused import\n --> a.rs:1:1\n    Checking warning\n\
                    warning: `a` (lib) generated 1 warning\nerror[E0425]: cannot find function";
        assert_eq!(faults(text), 2);
        assert_eq!(faults("    Checking memreport v0.2.0\n    Finished `dev` profile"), 0);
    }
}
