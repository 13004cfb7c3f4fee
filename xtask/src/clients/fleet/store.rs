//! A store with S3's interface gets every snapshot of twenty programs, and of some that nobody
//! prepared, exactly once, although the store is stopped, the agent is killed five times, and the
//! disk is full once.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::server::Server;
use super::{Bench, json, output};
use crate::failure::Failure;

const COUNTS: &str = include_str!("store/counts.sql");
const IDS: &str = include_str!("store/ids.sql");

/// The programs.
const PROGRAMS: usize = 20;

/// Programs of Debian that nobody prepared, and their words.
const FOREIGN: [(&str, &[&str]); 2] = [
    (
        "python3",
        &[
            "-c",
            "import json, sys; kept = [json.loads('[1, 2]') for _ in range(50000)]; \
                         sys.stdin.read()",
        ],
    ),
    ("perl", &["-e", "my @kept = map { \"word $_\" } 1 .. 50000; <STDIN>"]),
];

/// The number of times that the agent is killed.
const KILLS: u32 = 5;

/// A child process that ends with the check.
pub(super) struct Running(pub(super) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A small disk for the spool, which can be filled.
struct Disk(PathBuf);

impl Disk {
    /// Mounts a disk of 3 MiB; `None` without the right to.
    fn mount(folder: &Path) -> Result<Option<Self>, Failure> {
        fs::create_dir_all(folder)?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=3m", "tmpfs"]).arg(folder);
        let is_mounted = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        Ok(is_mounted.then(|| Disk(folder.to_owned())))
    }

    fn fill(&self) -> Result<(), Failure> {
        // It ends when the disk is full.
        let _ = fs::write(self.0.join("filling"), vec![1; 4 << 20]);
        Ok(())
    }

    fn empty(&self) -> Result<(), Failure> {
        Ok(fs::remove_file(self.0.join("filling"))?)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// An agent, and the lines that it prints.
struct Agent {
    running: Running,
    lines: thread::JoinHandle<Vec<String>>,
}

impl Agent {
    fn start(
        bench: &Bench,
        folder: &Path,
        server: &Server,
        more: &[&str],
    ) -> Result<Self, Failure> {
        let mut command = Command::new(&bench.fleet);
        command.args(["agent", "--every", "1s", "--batch", "3s", "--dump-every", "5"]);
        command.args(["--max-share", "50", "--verbose", "--to", "s3://fleet/data"]);
        command.arg("--spool").arg(folder.join("disk/spool"));
        command.arg("--sockets").arg(folder.join("sockets")).args(more);
        server.set_variables(&mut command);
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let lines = BufReader::new(child.stderr.take().ok_or("no pipe")?).lines();
        let lines = thread::spawn(move || lines.map_while(Result::ok).collect());
        Ok(Agent { running: Running(child), lines })
    }

    /// Kills it, unless it has ended, and returns its lines.
    fn lines(self) -> Result<Vec<String>, Failure> {
        drop(self.running);
        self.lines.join().map_err(|_| "the reader of lines panicked".into())
    }
}

/// Returns whether every snapshot is in the store exactly once.
pub(super) fn run(bench: &Bench, out: &mut dyn Write) -> Result<bool, Failure> {
    if !bench.has_module("store", ["duckdb", "duckdb"], out)? || !Server::can_run(bench, out)? {
        return Ok(true);
    }
    let program = Bench::example("counted_program")?;
    let folder = bench.folder.join("store");
    let sockets = folder.join("sockets");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&sockets)?;
    let disk = Disk::mount(&folder.join("disk"))?;
    if disk.is_none() {
        writeln!(
            out,
            "clients fleet store: not run: the full disk, which needs the right to mount"
        )?;
    }
    let programs = start_programs(bench, &program, &sockets)?;
    let mut server = Server::start(bench)?;
    let shipped = ship(bench, &folder, &mut server, disk.as_ref())?;
    drop(programs);
    let counts = ask(bench, COUNTS, &server)?;
    let ids = ask(bench, IDS, &server)?;
    let verdict = Verdict::new(&shipped, &counts, &ids)?;
    writeln!(
        out,
        "clients fleet store: {}: {} snapshots of {} programs in {:?}, {} of them of {}; {} twice, \
         {} without their heap, {} of {} that were taken are missing, {} were under way at {KILLS} \
         kills; {} {} times; {} rounds waited for a full disk",
        if verdict.holds { "passed" } else { "FAILED" },
        verdict.shipped,
        verdict.programs,
        bench.shipping,
        verdict.foreign,
        FOREIGN.map(|(name, _)| name).join(" and "),
        verdict.twice,
        verdict.without_heap,
        verdict.missing,
        shipped.taken.len(),
        verdict.under_way,
        server.stop_is(),
        shipped.stops,
        shipped.full,
    )?;
    for line in &shipped.other {
        writeln!(out, "  {line}")?;
    }
    // The agent states that the store was away.
    Ok(verdict.holds && (disk.is_none() || shipped.full > 0) && shipped.refused >= shipped.stops)
}

/// Starts programs that count their snapshots, and those of [`FOREIGN`].
fn start_programs(bench: &Bench, program: &Path, sockets: &Path) -> Result<Vec<Running>, Failure> {
    let library = bench.folder.join("store/preload.so");
    output(Command::new(&bench.about_memory).args(["preload", "-o"]).arg(&library))?;
    let mut commands: Vec<Command> = Vec::new();
    for number in 0..PROGRAMS {
        let mut command = Command::new(program);
        command.env("OTEL_SERVICE_NAME", format!("shop-{number}"));
        commands.push(command);
    }
    for (name, words) in FOREIGN {
        // Debian's own: another one on the path may be a script that starts it.
        let file = Path::new("/usr/bin").join(name);
        if !file.exists() {
            return Err(format!("there is no {} (apt-get install {name})", file.display()).into());
        }
        let mut command = Command::new(file);
        command.args(words).env("LD_PRELOAD", &library).env("OTEL_SERVICE_NAME", name);
        commands.push(command);
    }
    let count = commands.len();
    let mut programs = Vec::new();
    for mut command in commands {
        command.env("XDG_RUNTIME_DIR", sockets).env("DMD", "1").stdin(Stdio::piped());
        command.env("OTEL_RESOURCE_ATTRIBUTES", "service.version=1.0,host.name=here");
        programs.push(Running(command.spawn()?));
    }
    let begin = Instant::now();
    while fs::read_dir(sockets)?.count() < count {
        if begin.elapsed() > Duration::from_secs(120) {
            return Err("the programs do not serve".into());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(programs)
}

/// The lines of the agents, sorted out.
#[derive(Default)]
struct Shipped {
    /// The snapshots that were on disk.
    taken: BTreeSet<String>,
    stops: usize,
    /// The lines about a full disk.
    full: usize,
    /// The lines about a store that is away.
    refused: usize,
    /// Lines that are none of these.
    other: Vec<String>,
}

impl Shipped {
    fn add(&mut self, lines: Vec<String>) {
        for line in lines {
            if let Some(id) = line.strip_prefix("taken ") {
                self.taken.insert(id.to_owned());
            } else if line.starts_with("the disk is full") {
                self.full += 1;
            } else if line.starts_with("nothing can be shipped") {
                self.refused += 1;
            } else if !line.contains("not shipped yet") && self.other.len() < 20 {
                self.other.push(line);
            }
        }
    }
}

/// Lets agents ship, and hinders them.
fn ship(
    bench: &Bench,
    folder: &Path,
    server: &mut Server,
    disk: Option<&Disk>,
) -> Result<Shipped, Failure> {
    let mut shipped = Shipped::default();
    let life = bench.shipping / (KILLS + 1);
    for kill in 0..KILLS {
        let agent = Agent::start(bench, folder, server, &[])?;
        thread::sleep(life / 3);
        match kill {
            // While the store is away, the next agent finds the files of the one before.
            1 | 3 => {
                server.stop()?;
                shipped.stops += 1;
            }
            2 => {
                server.start_again()?;
                if let Some(disk) = disk {
                    disk.fill()?;
                }
            }
            4 => {
                server.start_again()?;
            }
            _ => {}
        }
        thread::sleep(life / 3);
        if let (2, Some(disk)) = (kill, disk) {
            disk.empty()?;
        }
        // Not at the same place of each round.
        thread::sleep(life / 3 + Duration::from_millis(130 * u64::from(kill)));
        shipped.add(agent.lines()?);
    }
    let mut last = Agent::start(bench, folder, server, &["--rounds", "3"])?;
    let status = last.running.0.wait()?;
    let lines = last.lines()?;
    if !status.success() || lines.iter().any(|line| line.contains("not shipped yet")) {
        return Err(format!("the last agent left files: {lines:?}").into());
    }
    shipped.add(lines);
    Ok(shipped)
}

fn ask(bench: &Bench, question: &str, server: &Server) -> Result<Value, Failure> {
    let file = bench.folder.join("question.sql");
    fs::write(&file, question)?;
    let mut command = Command::new(&bench.fleet);
    command.arg("query").arg(&file).arg("s3://fleet/data");
    command.arg("--cache").arg(bench.folder.join("cache"));
    server.set_variables(&mut command);
    json(command.args(["--engine", "duckdb", "--python", &bench.python, "--format", "json"]))
}

/// The comparison of the store with what was taken.
#[derive(Default)]
struct Verdict {
    programs: usize,
    /// All reports, and those of programs that nobody prepared.
    shipped: i64,
    foreign: i64,
    twice: i64,
    missing: usize,
    under_way: i64,
    /// Reports whose heap no question finds.
    without_heap: i64,
    holds: bool,
}

impl Verdict {
    fn new(shipped: &Shipped, counts: &Value, ids: &Value) -> Result<Self, Failure> {
        let mut found = Verdict::default();
        for row in counts.as_array().ok_or("no rows")? {
            let number = |name: &str| row[name].as_i64().ok_or("no whole number");
            let (n, different, most) = (number("n")?, number("different")?, number("most")?);
            let service = row["service"].as_str().unwrap_or_default();
            let is_foreign = FOREIGN.iter().any(|(name, _)| *name == service);
            found.twice += n - different;
            match row["name"].as_str() {
                // The program counts its collections, so those that are missing are known.
                Some("collections") => found.under_way += most - different,
                Some("reports") => {
                    found.programs += 1;
                    found.shipped += n;
                    found.without_heap += n - most;
                    found.foreign += if is_foreign { n } else { 0 };
                }
                _ => {}
            }
        }
        let ids: BTreeSet<&str> =
            ids.as_array().into_iter().flatten().filter_map(|row| row["id"].as_str()).collect();
        found.missing = shipped.taken.iter().filter(|id| !ids.contains(id.as_str())).count();
        // A program is asked after the other: a kill loses one that is under way, or in memory.
        found.holds = found.programs == PROGRAMS + FOREIGN.len()
            && found.foreign > 0
            && found.twice == 0
            && found.missing == 0
            && found.without_heap == 0
            && found.under_way <= i64::from(KILLS)
            && shipped.taken.len() > PROGRAMS;
        Ok(found)
    }
}
