//! Response times for large dumps: block records, referrers of one block, and symbols.
//!
//! The records are compared with dmd.py if its path is given.

mod symbols;

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::generate::dumps::{Shape, dump};
use crate::generate::random::Random;
use crate::scratch::Scratch;
use crate::{build, on_path};

/// The least speedup over dmd.py.
const TARGET: f64 = 30.0;

const RUNS: usize = 5;

/// Measures and prints all figures. Returns `false` when a target is missed.
pub(crate) fn run(script: Option<&Path>, out: &mut dyn Write) -> Result<bool, Failure> {
    let ours = build::release("about-memory", "about-memory")?;
    let scratch = Scratch::new()?;
    let referrers = referrers(&ours, &scratch, out)?;
    let symbols = symbols::run(&ours, &scratch, out)?;
    Ok(records(script, &ours, &scratch, out)? & referrers & symbols)
}

/// Measures the search for the blocks that point at one block, among a million.
fn referrers(ours: &Path, scratch: &Scratch, out: &mut dyn Write) -> io::Result<bool> {
    const SECONDS: f64 = 5.0;
    let path = scratch.0.join("scan.json");
    let text = dump("scan", &Shape::million(), &mut Random::new(1));
    fs::write(&path, &text)?;
    // The block in the middle of the list.
    let addresses: Vec<_> = text.split("\"addr\": \"").skip(1).collect();
    let middle = addresses.get(addresses.len() / 2).and_then(|rest| rest.split('"').next());
    let address = middle.ok_or_else(|| io::Error::other("a scan has addresses"))?;
    let took = time(
        Command::new(ours).args(["dmd", "--no-fix-stacks", "--referrers", address]).arg(&path),
    )?;
    let seconds = took.as_secs_f64();
    writeln!(out, "referrers: {} MB, 1,000,000 blocks: {seconds:.3} s", text.len() / 1_000_000)?;
    writeln!(out, r#"{{"bench":"referrers","seconds":{seconds:.3},"target":{SECONDS}}}"#)?;
    Ok(seconds <= SECONDS)
}

fn records(
    script: Option<&Path>,
    ours: &Path,
    scratch: &Scratch,
    out: &mut dyn Write,
) -> io::Result<bool> {
    let path = scratch.0.join("large.json");
    let text = dump("dark-matter", &Shape::large(), &mut Random::new(1));
    fs::write(&path, &text)?;
    let mut ours_took = Duration::MAX;
    for _ in 0..RUNS {
        ours_took = ours_took
            .min(time(Command::new(ours).args(["heap", "records", "--no-fix-stacks"]).arg(&path))?);
    }
    writeln!(out, "analyse: {} MB, 300,000 block records", text.len() / 1_000_000)?;
    writeln!(out, "  heap records      {:>8.3} s (best of {RUNS})", ours_took.as_secs_f64())?;
    let Some(script) =
        script.filter(|script| script.is_file() && on_path::find(&["python3"], "python3").is_ok())
    else {
        writeln!(out, "  dmd.py            not run: give its path, and have python3 on the path")?;
        writeln!(out, "{}", line(ours_took.as_secs_f64(), None))?;
        return Ok(true);
    };
    let theirs_took = time(Command::new("python3").arg(script).arg("--no-fix-stacks").arg(&path))?;
    let ratio = theirs_took.as_secs_f64() / ours_took.as_secs_f64();
    writeln!(
        out,
        "  dmd.py            {:>8.3} s (once): {ratio:.1} times as long",
        theirs_took.as_secs_f64()
    )?;
    writeln!(out, "{}", line(ours_took.as_secs_f64(), Some(ratio)))?;
    Ok(ratio >= TARGET)
}

fn line(seconds: f64, ratio: Option<f64>) -> String {
    let ratio = ratio.map_or_else(|| "null".to_owned(), |ratio| format!("{ratio:.1}"));
    format!(
        r#"{{"bench":"analyse","seconds":{seconds:.3},"times_dmd_py":{ratio},"target":{TARGET}}}"#
    )
}

fn time(command: &mut Command) -> io::Result<Duration> {
    let start = Instant::now();
    let status = command.stdout(Stdio::null()).status()?;
    if status.success() {
        Ok(start.elapsed())
    } else {
        Err(io::Error::other(format!("{command:?} failed")))
    }
}
