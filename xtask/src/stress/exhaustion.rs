//! `cargo xtask stress exhaustion [SECONDS]`: programs that run out of one resource after another,
//! with clients that are stopped, under clocks that jump.
//!
//! Each must hold as much resident memory, threads and descriptors at the end as after its first
//! rounds. One of them is not tracked.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::build;
use crate::failure::Failure;
use crate::scratch::Scratch;

/// The values of `$DMD`. The last program is alone: it has no clients, and runs out of memory too.
const MODES: [&str; 5] = [
    ASLEEP,
    "--stacks=full",
    "--mode=profile --sample-bytes=64K",
    "--mode=cumulative",
    "--stacks=partial",
];

/// Tracks nothing: such a program shows what the system and its heap keep by themselves.
const ASLEEP: &str = "";

/// Has glibc use one arena for all threads. With sixteen, resident memory grows for hours: each
/// arena's free pages become resident as its few live blocks move about.
const ONE_ARENA: &str = "glibc.malloc.arena_max=1";

/// The moments after the warm-up at which the programs are looked at.
const QUARTERS: u32 = 4;

/// The clients that are stopped at any time. The oldest is killed for each further one.
const CLIENTS: usize = 8;

/// The time between two clients.
const BETWEEN_CLIENTS: Duration = Duration::from_millis(500);

/// The largest growth of resident memory, in KiB. The programs return free memory to the system
/// before they are looked at; pages that a live block shares with free ones stay.
const GROWTH: u64 = 1024;

/// The amount of each resource that a process holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    resident_kib: u64,
    threads: u64,
    descriptors: usize,
}

impl Held {
    fn has_more_open(&self, before: &Self) -> bool {
        self.threads > before.threads || self.descriptors > before.descriptors
    }
}

/// Runs the programs side by side. Returns `false` when one fails, or holds more than before.
pub(crate) fn run(seconds: Option<&str>, out: &mut dyn Write) -> Result<bool, Failure> {
    let seconds: u64 = seconds.unwrap_or("60").parse()?;
    let about_memory = build::release("about-memory", "about-memory")?;
    let program = build::release("memreport-tests", "exhausted")?;
    let clock = clock()?;
    let folder = Scratch::new()?;
    let has_disk = mounts_disks();
    if !has_disk {
        writeln!(out, "not run: full disks, because `unshare --mount` and `mount` fail here")?;
    }
    let sockets = folder.0.join("sockets");
    fs::DirBuilder::new().mode(0o700).create(&sockets)?;
    let disk = if has_disk { folder.0.join("disk") } else { PathBuf::from("-") };
    let mut subjects = Vec::new();
    for (variable, number) in MODES.into_iter().zip(1..) {
        let mut command = if has_disk { with_disk(&disk)? } else { Command::new("env") };
        command.arg(&program).arg(seconds.to_string()).arg(&disk);
        if number == MODES.len() {
            command.arg("alone");
        }
        if variable != ASLEEP {
            command.env("DMD", variable);
        }
        command.env("LD_PRELOAD", &clock).env("GLIBC_TUNABLES", ONE_ARENA);
        command.env("XDG_RUNTIME_DIR", &sockets);
        subjects.push(Subject::start(variable, &mut command)?);
    }
    for subject in &mut subjects {
        subject.line()?;
        if !snapshot(&about_memory, &sockets, subject).status()?.success() {
            return Err(format!("{}: it answers no client", subject.variable).into());
        }
    }
    // As long as the programs warm up.
    let with_clients = MODES.len() - 1;
    let (time, warm_up) = (Duration::from_secs(seconds), Duration::from_secs(120));
    stop_clients(&about_memory, &sockets, &subjects[..with_clients], warm_up)?;
    let mut clients = 0;
    subjects.iter_mut().try_for_each(Subject::look)?;
    for _ in 0..QUARTERS {
        subjects.iter_mut().try_for_each(Subject::go_on)?;
        let subjects_of_clients = &subjects[..with_clients];
        clients += stop_clients(&about_memory, &sockets, subjects_of_clients, time / QUARTERS)?;
        subjects.iter_mut().try_for_each(Subject::look)?;
    }
    writeln!(out, "{clients} clients were stopped in the middle of a request")?;
    let mut all_hold = clients > 0;
    for subject in subjects {
        all_hold &= subject.finish(out)?;
    }
    writeln!(out, "{}", if all_hold { "all of it holds" } else { "FAILED" })?;
    Ok(all_hold)
}

/// Builds the library whose clocks jump, and returns its path.
fn clock() -> Result<PathBuf, Failure> {
    const PACKAGE: &str = "memreport-plugin-jumping-clock";
    if !build::cargo().args(["build", "--release", "--package", PACKAGE]).status()?.success() {
        return Err(format!("{PACKAGE} could not be built").into());
    }
    Ok(build::target()?.join("release").join(format!("lib{}.so", PACKAGE.replace('-', "_"))))
}

/// Returns whether this user can mount disks in a namespace.
fn mounts_disks() -> bool {
    let folder = std::env::temp_dir();
    let output = with_disk(&folder).and_then(|mut command| Ok(command.arg("true").output()?));
    output.is_ok_and(|output| output.status.success())
}

/// Returns a command that runs a program with a disk of 256 KiB at this place, which nobody else
/// sees.
fn with_disk(place: &Path) -> Result<Command, Failure> {
    fs::create_dir_all(place)?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-current-user", "--keep-caps", "--", "sh", "-c"]);
    command.arg("mount -t tmpfs -o size=256k tmpfs \"$0\" && exec \"$@\"").arg(place);
    Ok(command)
}

/// Starts clients and stops each in the middle of its request, until the time is over. Returns
/// their number.
fn stop_clients(
    about_memory: &Path,
    sockets: &Path,
    subjects: &[Subject],
    time: Duration,
) -> Result<usize, Failure> {
    let end = Instant::now() + time;
    let mut stopped = VecDeque::new();
    let mut count = 0;
    while Instant::now() < end {
        let subject = &subjects[count % subjects.len()];
        let client = snapshot(about_memory, sockets, subject).spawn()?;
        // Somewhere between its first request and the last byte of the answer.
        thread::sleep(Duration::from_millis(2 + count as u64 % 23));
        if Command::new("kill").args(["-STOP", &client.id().to_string()]).status()?.success() {
            count += 1;
        }
        stopped.push_back(client);
        if stopped.len() > CLIENTS {
            stopped.pop_front().map(end_client).transpose()?;
        }
        thread::sleep(BETWEEN_CLIENTS);
    }
    stopped.into_iter().try_for_each(end_client)?;
    Ok(count)
}

/// Returns a client that asks for a snapshot.
fn snapshot(about_memory: &Path, sockets: &Path, subject: &Subject) -> Command {
    let mut command = Command::new(about_memory);
    command.args(["snapshot", &subject.child.id().to_string(), "--output"]);
    command.arg(sockets.join("report.json"));
    command.env("XDG_RUNTIME_DIR", sockets).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn end_client(mut client: Child) -> Result<(), Failure> {
    client.kill()?;
    client.wait()?;
    Ok(())
}

/// A program that runs out of resources.
struct Subject {
    variable: &'static str,
    child: Child,
    out: BufReader<ChildStdout>,
    /// The last line that it has printed.
    did: String,
    moments: Vec<Held>,
}

impl Subject {
    fn start(variable: &'static str, command: &mut Command) -> Result<Self, Failure> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let out = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Self { variable, child, out, did: String::new(), moments: Vec::new() })
    }

    /// Waits for a line.
    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        self.out.read_line(&mut line)?;
        if line.is_empty() {
            return Err(format!("{}: the program has ended", self.variable).into());
        }
        Ok(line.trim_end().to_owned())
    }

    fn go_on(&mut self) -> Result<(), Failure> {
        self.child.stdin.as_mut().ok_or("no input")?.write_all(b"\n")?;
        Ok(())
    }

    fn held(&self) -> Result<Held, Failure> {
        let folder = PathBuf::from(format!("/proc/{}", self.child.id()));
        let status = fs::read_to_string(folder.join("status"))?;
        let number = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok())
        };
        Ok(Held {
            resident_kib: number("VmRSS:").ok_or("no VmRSS")?,
            threads: number("Threads:").ok_or("no Threads")?,
            descriptors: fs::read_dir(folder.join("fd"))?.count(),
        })
    }

    /// Waits until the program pauses, and keeps what it holds then.
    fn look(&mut self) -> Result<(), Failure> {
        self.did = self.line()?;
        // Connections of killed clients end shortly after them.
        let begin = Instant::now();
        let mut held = self.held()?;
        while self.moments.first().is_some_and(|first| held.has_more_open(first))
            && begin.elapsed() < Duration::from_secs(5)
        {
            thread::sleep(Duration::from_millis(50));
            held = self.held()?;
        }
        self.moments.push(held);
        Ok(())
    }

    /// Ends the program, and prints what it held at each moment.
    fn finish(mut self, out: &mut dyn Write) -> Result<bool, Failure> {
        self.go_on()?;
        let has_ended_well = self.child.wait()?.success();
        let (Some(first), Some(last)) = (self.moments.first(), self.moments.last()) else {
            return Err("never looked at".into());
        };
        let holds = has_ended_well
            && last.resident_kib <= first.resident_kib + GROWTH
            && !last.has_more_open(first);
        let resident: Vec<String> =
            self.moments.iter().map(|held| held.resident_kib.to_string()).collect();
        writeln!(
            out,
            "$DMD {:?}: {}; resident {} KiB, threads {} -> {}, descriptors {} -> {}{}",
            self.variable,
            self.did,
            resident.join(" -> "),
            first.threads,
            last.threads,
            first.descriptors,
            last.descriptors,
            if holds { "" } else { " FAILED" }
        )?;
        Ok(holds)
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
