//! `cargo xtask stress hooks [SECONDS]`: random operations on several threads, compared with a
//! locked map at every pause, in each mode for this time.

use std::io::Write;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::build;
use crate::failure::Failure;

/// The values of `$DMD`.
const MODES: [&str; 5] =
    ["--stacks=none", "--stacks=full", "--stacks=partial", "--mode=cumulative", "--times=yes"];

/// Runs the subject in each mode, with another seed each time. Returns `false` when one fails.
pub(crate) fn run(seconds: Option<&str>, out: &mut dyn Write) -> Result<bool, Failure> {
    let seconds: u64 = seconds.unwrap_or("30").parse()?;
    let subject = build::release("memreport-stress", "hooks")?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let mut all_hold = true;
    for (variable, seed) in MODES.into_iter().zip(now..) {
        let mut command = Command::new(&subject);
        let output =
            command.env("DMD", variable).args([seconds, seed].map(|n| n.to_string())).output()?;
        let message = if output.status.success() { &output.stdout } else { &output.stderr };
        writeln!(out, "DMD={variable}: {}", String::from_utf8_lossy(message).trim_end())?;
        if !output.status.success() {
            writeln!(out, "FAILED with seed {seed}")?;
            all_hold = false;
        }
    }
    writeln!(out, "{}", if all_hold { "the table equals the map" } else { "FAILED" })?;
    Ok(all_hold)
}
