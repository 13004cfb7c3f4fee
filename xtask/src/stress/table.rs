//! `cargo xtask stress [SECONDS]`: threads load the table of live blocks, in each mode for this
//! time.

use std::io::Write;
use std::process::Command;

use crate::build;
use crate::check::sanitize::MODES;
use crate::failure::Failure;

/// Runs the subject in each mode. Returns `false` when one fails.
pub(crate) fn run(seconds: Option<&str>, out: &mut dyn Write) -> Result<bool, Failure> {
    let seconds = seconds.unwrap_or("30");
    if !seconds.parse::<f64>().is_ok_and(f64::is_normal) {
        return Err(format!("'{seconds}' is no number of seconds").into());
    }
    let subject = build::release("memreport-stress", "stress")?;
    let mut all_hold = true;
    for (variable, words) in MODES {
        write!(out, "DMD={variable} {}: ", words.join(" "))?;
        out.flush()?;
        let output =
            Command::new(&subject).env("DMD", variable).arg(seconds).args(words).output()?;
        let message = if output.status.success() { &output.stdout } else { &output.stderr };
        writeln!(out, "{}", String::from_utf8_lossy(message).trim_end())?;
        all_hold &= output.status.success();
    }
    writeln!(out, "{}", if all_hold { "all invariants hold" } else { "FAILED" })?;
    Ok(all_hold)
}
