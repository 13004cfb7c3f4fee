//! Resources that processes used: processor time, instructions and peak memory.
#![expect(unsafe_code, reason = "`getrusage` is the only source of children's processor time")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::mem::MaybeUninit;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use crate::failure::Failure;

/// The times of a run, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) processor: f64,
    pub(crate) wall: f64,
}

/// Runs a command to its end, without input. The error is the program's own message.
pub(crate) fn time(command: &mut Command) -> Result<(Times, Output), String> {
    let before = processor_time_of_children();
    let begin = Instant::now();
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let wall = begin.elapsed().as_secs_f64() * 1e9;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(reason(&message).unwrap_or_else(|| output.status.to_string()));
    }
    let processor = processor_time_of_children() - before;
    Ok((Times { processor, wall }, output))
}

/// Returns the processor time of all children that have ended, in nanoseconds.
pub(crate) fn processor_time_of_children() -> f64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is writable memory of the size and alignment of `rusage`.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) };
    // SAFETY: all zeros is a valid `rusage`, and the call writes only valid fields.
    let usage = unsafe { usage.assume_init() };
    [usage.ru_utime, usage.ru_stime]
        .map(|time| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3)
        .iter()
        .sum()
}

/// Returns the peak resident memory of this process, in KiB.
pub(crate) fn peak_of_this_process() -> Result<f64, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .ok_or("no VmHWM in /proc/self/status")?;
    Ok(line.trim_end_matches("kB").trim().parse()?)
}

/// Returns the number of instructions of a whole run, counted by valgrind.
pub(crate) fn instructions(
    program: &Path,
    prepare: impl FnOnce(&mut Command),
) -> Result<f64, String> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    prepare(&mut command);
    let output = command.output().map_err(|_| "valgrind is not installed".to_owned())?;
    let message = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(reason(&message).unwrap_or_else(|| "it failed".to_owned()));
    }
    let collected = message.lines().find_map(|line| line.split_once("Collected :"));
    let count = collected.and_then(|(_, count)| count.trim().parse().ok());
    count.ok_or_else(|| "valgrind printed no number of instructions".to_owned())
}

/// Returns the number of instructions of a whole run, counted by qemu: for programs that do not run
/// under valgrind. It is some hundred times slower than the program.
pub(crate) fn instructions_by_qemu(
    program: &Path,
    prepare: impl FnOnce(&mut Command),
) -> Result<f64, String> {
    let mut command = Command::new("qemu-x86_64");
    // A line for each instruction.
    command.args(["-singlestep", "-d", "exec,nochain", "-D", "/dev/stderr"]).arg(program);
    prepare(&mut command);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|_| "qemu-x86_64 is not installed")?;
    let mut lines = child.stderr.take().map(BufReader::new).ok_or("there is no pipe")?;
    let (mut count, mut line) = (0.0, Vec::new());
    while lines.read_until(b'\n', &mut line).map_err(|error| error.to_string())? > 0 {
        count += f64::from(u8::from(line.starts_with(b"Trace")));
        line.clear();
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() { Ok(count) } else { Err(status.to_string()) }
}

/// Returns a program's own reason for its failure, without its name and process number.
pub(crate) fn reason(message: &str) -> Option<String> {
    let is_words = |line: &&str| !line.starts_with("==") && !line.trim().is_empty();
    let line = message.lines().find(is_words)?;
    Some(line.split_once("] ").map_or(line, |(_, words)| words).to_owned())
}
