//! `cargo xtask stress log [SECONDS]`: four threads allocate while their log is read.
//!
//! A running program is also followed by clients that end normally and by one that is killed.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use about_memory::input::live::{Connection, Program};

use crate::build;
use crate::failure::Failure;

/// Additional tracking by DMD during the test.
const VARIABLES: [Option<&str>; 3] =
    [None, Some("--stacks=full"), Some("--mode=profile --sample-bytes=64K")];

/// Runs all tests. Returns `false` when one fails.
pub(crate) fn run(seconds: Option<&str>, out: &mut dyn Write) -> Result<bool, Failure> {
    let seconds = seconds.unwrap_or("10");
    let subject = build::release("memreport-tests", "log")?;
    let about_memory = build::release("about-memory", "about-memory")?;
    let mut all_hold = true;
    for variable in VARIABLES {
        let mut command = Command::new(&subject);
        command.args(["stress", seconds]).env_remove("DMD");
        if let Some(words) = variable {
            command.env("DMD", words);
        }
        let output = command.output()?;
        let message = if output.status.success() { &output.stdout } else { &output.stderr };
        let message = String::from_utf8_lossy(message);
        writeln!(out, "DMD={}: {}", variable.unwrap_or(""), message.trim_end())?;
        all_hold &= output.status.success();
    }
    let folder = std::env::temp_dir().join(format!("xtask-log-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    for signal in ["INT", "TERM", "KILL"] {
        let outcome = follow(&subject, &about_memory, &folder, signal);
        let held = outcome.is_ok();
        let message = outcome.unwrap_or_else(|error| format!("FAILED: {error}"));
        writeln!(out, "about-memory log --follow, ended by SIG{signal}: {message}")?;
        all_hold &= held;
    }
    fs::remove_dir_all(&folder)?;
    writeln!(out, "{}", if all_hold { "all of it holds" } else { "FAILED" })?;
    Ok(all_hold)
}

/// A process that ends when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Follows a program until a signal ends the client, and checks that the program's state is
/// restored.
fn follow(
    subject: &Path,
    about_memory: &Path,
    folder: &Path,
    signal: &str,
) -> Result<String, Failure> {
    let mut command = Command::new(subject);
    command.arg("served").arg(folder).env_remove("DMD");
    let mut program = Running(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
    let mut socket = String::new();
    BufReader::new(program.0.stdout.take().ok_or("no output")?).read_line(&mut socket)?;
    let socket = PathBuf::from(socket.trim());
    let pid = program.0.id();
    let connection =
        Connection::new(Program { pid, socket: socket.clone() }, Duration::from_secs(10));
    let mut client = Command::new(about_memory)
        .arg("log")
        .arg(&socket)
        .args(["--follow", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .map(Running)?;
    let lines = BufReader::new(client.0.stdout.take().ok_or("no output")?);
    let mut lines = lines.lines();
    let first = lines.next().ok_or("it printed nothing")??;
    let during = connection.status()?.tracking;
    if !during.contains("observed") {
        return Err(format!("while it is followed, the program tracks: {during}").into());
    }
    let sent = Command::new("kill").args(["-s", signal, &client.0.id().to_string()]).status()?;
    let begin = Instant::now();
    // The client may be in the middle of a write: its output is read to the end.
    lines.try_for_each(|line| line.map(drop))?;
    let status = client.0.wait()?;
    if !sent.success() || signal != "KILL" && !status.success() {
        return Err(format!("it ended with {status}").into());
    }
    while connection.status()?.tracking != "off: new blocks are not tracked" {
        if begin.elapsed() > Duration::from_secs(10) {
            return Err(format!("it still tracks: {}", connection.status()?.tracking).into());
        }
        thread::sleep(Duration::from_millis(20));
    }
    if !first.contains("timeUs") {
        return Err(format!("it printed {first}").into());
    }
    Ok(format!("tracking is off again after {:.1?}", begin.elapsed()))
}
