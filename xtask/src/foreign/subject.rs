//! A running program, and the truth about its memory.

use std::fmt::{self, Display};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::Bench;
use crate::failure::Failure;

/// The time at which tracking begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tracking {
    FromStart,
    Late,
    Never,
}

impl Display for Tracking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tracking::FromStart => "tracked from the start",
            Tracking::Late => "tracked late",
            Tracking::Never => "not tracked",
        })
    }
}

/// A counter of the program, by its place among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counter {
    Usable,
    Blocks,
    InUse,
}

/// The number of counters, each of three words: its value, its lowest and its highest.
const COUNTERS: usize = 3;

/// The lowest and the highest value of each counter, and of resident memory, during a command.
#[derive(Debug)]
pub(super) struct Truth {
    counters: [RangeInclusive<i64>; COUNTERS],
    pub(super) resident: RangeInclusive<i64>,
}

impl Truth {
    pub(super) fn of(&self, counter: Counter) -> RangeInclusive<i64> {
        self.counters[counter as usize].clone()
    }
}

/// A program that works until it has to pause.
pub(super) struct Subject {
    child: Child,
    input: ChildStdin,
    lines: BufReader<ChildStdout>,
    /// The program's memory, and where its counters are.
    memory: File,
    counters: u64,
    pub(super) tracking: Tracking,
}

impl Subject {
    /// Starts a program and waits until it has worked for a while and is tracked as wanted.
    pub(super) fn start(
        program: &Path,
        tracking: Tracking,
        bench: &Bench,
    ) -> Result<Self, Failure> {
        let mut command = Command::new(program);
        command.env_remove("DMD");
        if tracking == Tracking::FromStart {
            command.env("DMD", "1");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().ok_or("no input")?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut line = String::new();
        lines.read_line(&mut line)?;
        let address = line.trim().strip_prefix("counters ").ok_or("no address of the counters")?;
        let counters = address.parse()?;
        let path = format!("/proc/{}/mem", child.id());
        let memory = OpenOptions::new().read(true).write(true).open(path)?;
        let mut subject = Self { child, input, lines, memory, counters, tracking };
        subject.wait_for("busy")?;
        if tracking == Tracking::Late {
            let track = bench.about_memory().arg("track").arg(subject.pid()).output()?;
            if !track.status.success() {
                return Err(String::from_utf8_lossy(&track.stderr).into_owned().into());
            }
        }
        Ok(subject)
    }

    pub(super) fn id(&self) -> u64 {
        self.child.id().into()
    }

    pub(super) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Lets the program finish its round and wait.
    pub(super) fn pause(&mut self) -> Result<(), Failure> {
        self.input.write_all(b"\n")?;
        self.wait_for("paused")
    }

    fn wait_for(&mut self, word: &str) -> Result<(), Failure> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        if line.trim() == word {
            Ok(())
        } else {
            Err(format!("the program says {line:?} instead of `{word}`").into())
        }
    }

    /// Runs a command and returns its result with the truth in the meantime.
    pub(super) fn during<T>(
        &self,
        command: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<(T, Truth), Failure> {
        for [now, lowest, highest] in self.words()? {
            for place in [lowest, highest] {
                self.memory.write_all_at(&self.word(now)?.to_ne_bytes(), place)?;
            }
        }
        let is_over = AtomicBool::new(false);
        let (result, resident) = thread::scope(|scope| {
            let resident = scope.spawn(|| self.resident_until(&is_over));
            let result = command();
            is_over.store(true, Ordering::Relaxed);
            let resident = resident.join().map_err(|_| "the reader of resident memory panicked")?;
            Ok::<_, Failure>((result?, resident?))
        })?;
        let mut counters = [const { 0..=0 }; COUNTERS];
        for (range, [_, lowest, highest]) in counters.iter_mut().zip(self.words()?) {
            *range = self.word(lowest)?..=self.word(highest)?;
        }
        Ok((result, Truth { counters, resident }))
    }

    /// Returns the addresses of each counter's words.
    fn words(&self) -> Result<[[u64; 3]; COUNTERS], Failure> {
        let mut words = [[0; 3]; COUNTERS];
        let mut next = self.counters;
        for word in words.as_flattened_mut() {
            *word = next;
            next = next.checked_add(8).ok_or("no address")?;
        }
        Ok(words)
    }

    fn word(&self, place: u64) -> Result<i64, Failure> {
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes, place)?;
        Ok(i64::from_ne_bytes(bytes))
    }

    /// Returns the lowest and the highest resident bytes that are seen until a command is over.
    fn resident_until(&self, is_over: &AtomicBool) -> Result<RangeInclusive<i64>, Failure> {
        let first = self.resident()?;
        let mut range = first..=first;
        loop {
            let is_last = is_over.load(Ordering::Relaxed);
            let now = self.resident()?;
            range = now.min(*range.start())..=now.max(*range.end());
            if is_last {
                return Ok(range);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns resident bytes by the kernel's exact account.
    fn resident(&self) -> Result<i64, Failure> {
        let account = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id()))?;
        let line = account.lines().find_map(|line| line.strip_prefix("Rss:")).ok_or("no Rss")?;
        let kib: i64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kib * 1024)
    }

    /// Ends the program.
    pub(super) fn end(self) -> Result<(), Failure> {
        let Self { mut child, input, .. } = self;
        drop(input);
        child.wait()?;
        Ok(())
    }
}
