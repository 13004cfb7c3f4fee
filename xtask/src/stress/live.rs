//! `cargo xtask stress live [SECONDS]`: reports from many running programs at once, and 100 reports
//! a second from one.
//!
//! That program allocates meanwhile, under the locks that its reporters try.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use about_memory::input::live::{Connection, Program};

use crate::build;
use crate::failure::Failure;

/// The number of programs that run at once.
const PROGRAMS: usize = 20;

/// The longest `about-memory ps` may take for all of them.
const ALL_WITHIN: Duration = Duration::from_millis(300);

/// Requests per second to the one program, from this many clients.
const RATE: u32 = 100;
const CLIENTS: u32 = 4;

/// The longest time for a response.
const DEADLINE: Duration = Duration::from_millis(250);

/// The largest growth of resident memory: room for the allocator's caches, but not for a leak.
const GROWTH: u64 = 4 << 20;

/// A program with an open memreport socket, which ends on drop.
struct Served {
    child: Child,
    socket: PathBuf,
}

impl Served {
    fn start(subject: &Path, folder: &Path, words: &[&str]) -> Result<Self, Failure> {
        let mut command = Command::new(subject);
        command.args(words).arg(format!("folder={}", folder.display()));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        let out = child.stdout.take().ok_or("no output")?;
        BufReader::new(out).read_line(&mut line)?;
        Ok(Served { child, socket: line.trim().into() })
    }

    /// Returns the resident bytes and the number of threads.
    fn size(&self) -> Result<(u64, u64), Failure> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let number = |key: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            line.split_ascii_whitespace().next()?.parse().ok()
        };
        let resident = number("VmRSS:").ok_or("no VmRSS")? * 1024;
        Ok((resident, number("Threads:").ok_or("no Threads")?))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Runs both tests. Returns `false` when one fails.
pub(crate) fn run(seconds: Option<&str>, out: &mut dyn Write) -> Result<bool, Failure> {
    let seconds: u32 = seconds.unwrap_or("30").parse()?;
    let subject = build::release("memreport-tests", "served")?;
    let about_memory = build::release("about-memory", "about-memory")?;
    let folder = std::env::temp_dir().join(format!("xtask-live-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let many = many_at_once(&subject, &about_memory, &folder, out);
    let one = one_often(&subject, &folder, seconds, out);
    fs::remove_dir_all(&folder)?;
    let all_hold = many? & one?;
    writeln!(out, "{}", if all_hold { "all of it holds" } else { "FAILED" })?;
    Ok(all_hold)
}

fn many_at_once(
    subject: &Path,
    about_memory: &Path,
    folder: &Path,
    out: &mut dyn Write,
) -> Result<bool, Failure> {
    let programs: Vec<_> =
        (0..PROGRAMS).map(|_| Served::start(subject, folder, &[])).collect::<Result<_, _>>()?;
    let mut times = Vec::new();
    for _ in 0..9 {
        let begin = Instant::now();
        let output = Command::new(about_memory).arg("ps").arg("--folder").arg(folder).output()?;
        times.push(begin.elapsed());
        let text = String::from_utf8_lossy(&output.stdout);
        let measured = text.lines().filter(|line| line.contains('%')).count();
        if measured != programs.len() {
            writeln!(out, "{measured} of {} programs were measured:\n{text}", programs.len())?;
            return Ok(false);
        }
    }
    times.sort();
    let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
    let holds = worst < ALL_WITHIN;
    writeln!(
        out,
        "{PROGRAMS} programs measured by one `about-memory ps`: {median:.0?}, at worst {worst:.0?} of {} runs (at most {ALL_WITHIN:?}){}",
        times.len(),
        if holds { "" } else { " FAILED" }
    )?;
    Ok(holds)
}

fn one_often(
    subject: &Path,
    folder: &Path,
    seconds: u32,
    out: &mut dyn Write,
) -> Result<bool, Failure> {
    let program = Served::start(subject, folder, &["busy"])?;
    // Clients that connect and send nothing.
    let silent: Vec<_> =
        (0..30).map(|_| UnixStream::connect(&program.socket)).collect::<Result<_, _>>()?;
    ask_often(&program, 2)?;
    let before = program.size()?;
    let mut times = ask_often(&program, seconds)?;
    let after = settled(&program, before.1)?;
    drop(silent);
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    let missed = times.iter().filter(|time| **time > DEADLINE).count();
    let grown = after.0.saturating_sub(before.0);
    let holds = missed == 0 && grown < GROWTH && after.1 <= before.1;
    writeln!(
        out,
        "{} reports of a busy program at {RATE} a second: half within {:.1?}, 99% within {:.1?}, all within {:.1?}; {missed} later \
         than {DEADLINE:?}; resident {} -> {} KiB, threads {} -> {}{}",
        times.len(),
        at(50),
        at(99),
        at(100),
        before.0 / 1024,
        after.0 / 1024,
        before.1,
        after.1,
        if holds { "" } else { " FAILED" }
    )?;
    Ok(holds)
}

/// Returns the size once the threads are no more than before: a thread ends shortly after its
/// response.
fn settled(program: &Served, threads: u64) -> Result<(u64, u64), Failure> {
    let begin = Instant::now();
    loop {
        let size = program.size()?;
        if size.1 <= threads || begin.elapsed() > Duration::from_secs(2) {
            return Ok(size);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Requests reports at a steady rate. Returns the time of each, measured from its due time.
fn ask_often(program: &Served, seconds: u32) -> Result<Vec<Duration>, Failure> {
    let connection = Connection::new(
        Program { pid: program.child.id(), socket: program.socket.clone() },
        Duration::from_secs(10),
    );
    let begin = Instant::now();
    let period = Duration::from_secs(1) / RATE;
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let connection = connection.clone();
                scope.spawn(move || {
                    let mut times = Vec::new();
                    for number in (client..seconds * RATE).step_by(CLIENTS as usize) {
                        let due = begin + period * number;
                        thread::sleep(due.saturating_duration_since(Instant::now()));
                        connection.report(false)?;
                        times.push(due.elapsed());
                    }
                    Ok::<_, about_memory::input::live::LiveError>(times)
                })
            })
            .collect();
        let mut times = Vec::new();
        for client in clients {
            times.extend(client.join().map_err(|_| "a client panicked")??);
        }
        Ok(times)
    })
}
