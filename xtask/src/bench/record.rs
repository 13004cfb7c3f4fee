//! The cost of recording, beside the same program with DMD asleep, and the file size per minute.

mod every_block;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::overhead::programs::Files;
use super::overhead::rounds::Effort;
use super::process::processor_time_of_children;
use crate::bench::figure::{Figure, lines, table};
use crate::build;
use crate::failure::Failure;
use crate::scratch::Scratch;

/// Runs `cargo xtask bench record [--every-block] [--quick]`. Returns `false` when a target is
/// missed.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let is_quick = args.contains(&"--quick");
    if args.contains(&"--every-block") {
        return every_block::run(is_quick, out);
    }
    let subject = build::release("memreport-tests", "fulltext")?;
    let scratch = Scratch::new()?;
    let effort = if is_quick { Effort::QUICK } else { Effort::FULL };
    let files = Files::write(&scratch.0, effort)?;
    let recording = scratch.0.join("recording.gz");
    let rounds = if is_quick { 5 } else { 31 };
    let (mut processor, mut wall, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let asleep = time(&subject, &files, None)?;
        let recorded = time(&subject, &files, Some(&recording))?;
        processor.push(recorded.0 / asleep.0);
        wall.push(recorded.1 / asleep.1);
        #[expect(clippy::cast_precision_loss, reason = "megabytes, printed with three digits")]
        let megabytes = std::fs::metadata(&recording)?.len() as f64 / 1e6;
        sizes.push(megabytes * 60.0 / recorded.1);
    }
    let figures = [
        Figure::new("processor time", processor).at_most(1.03, "x"),
        Figure::new("wall time", wall),
        Figure::new("a minute's file", sizes).at_most(20.0, "MB"),
    ];
    table("recording the example program, beside asleep", &figures, out)?;
    Ok(lines(&figures, out)?)
}

/// Returns the processor time and the wall time of a run, in seconds.
fn time(subject: &Path, files: &Files, recording: Option<&Path>) -> Result<(f64, f64), Failure> {
    let mut command = Command::new(subject);
    command.args(["--no-snapshot", "--configuration"]).args([&files.configuration, &files.texts]);
    command.env_remove("DMD").envs(recording.map(|file| ("MEMREPORT_RECORD", file)));
    let before = processor_time_of_children();
    let begin = Instant::now();
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let pid = child.id();
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let wall = begin.elapsed().as_secs_f64();
    if let Some(file) = recording {
        // Without `%p`, the name ends in the process number.
        std::fs::rename(format!("{}.{pid}", file.display()), file)?;
    }
    Ok(((processor_time_of_children() - before) / 1e9, wall))
}
