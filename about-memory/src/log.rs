//! `about-memory log PROGRAM`: what a running program allocates, as it does.

mod entry;

use std::io::Write;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use memreport::serve::{Part, Request};
use memreport_analysis::read;
use memreport_analysis::symbols::Symboliser;
use serde::Deserialize;

use crate::live::{self, Connection, LiveError, Target};
use crate::ps::seconds;
use crate::show::Failure;
use entry::Entry;

/// `about-memory log`
#[derive(Debug, Args)]
pub struct LogArgs {
    /// A running program, by number or name: `about-memory ps` lists them
    #[arg(value_name = "PID|NAME")]
    program: Target,
    /// Go on until Ctrl-C, or until the program ends
    #[arg(short, long, conflicts_with = "seconds")]
    follow: bool,
    /// Without `--follow`: for how long
    #[arg(long = "for", value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    seconds: Duration,
    /// Print only a sample: each allocation with this probability, from 0 to 1
    #[arg(long, value_name = "NUMBER", conflicts_with = "sample_bytes")]
    probability: Option<f64>,
    /// Print only a sample: one byte in so many is hit, and its block is printed
    #[arg(long, value_name = "BYTES")]
    sample_bytes: Option<NonZeroU64>,
    /// How many allocations the program keeps between two looks; of more, the newest
    #[arg(long, value_name = "N", default_value_t = dmd::observe::MAX_LOG_LENGTH)]
    length: usize,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value = "0.2", value_parser = seconds)]
    every: Duration,
    /// How many frames of each stack are printed; 0 is all
    #[arg(long, value_name = "N", default_value_t = 3)]
    frames: usize,
    /// Print a line of JSON for each allocation, with the whole stack
    #[arg(long, conflicts_with = "frames")]
    json: bool,
}

/// How long the program may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often the program hears that somebody is there.
const STAY: Duration = Duration::from_secs(1);

/// How many logs may have been taken and not printed.
const AHEAD: usize = 4;

/// Runs the subcommand.
///
/// # Errors
/// When the program cannot be asked or does not track, and those of `out`.
pub fn main(args: &LogArgs, out: &mut dyn Write, notes: &mut dyn Write) -> Result<(), Failure> {
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_over))?;
    }
    let connection = live::choose(&args.program, PATIENCE)?;
    let following = Following::begin(&connection, args)?;
    let (taken, takes) = mpsc::sync_channel(AHEAD);
    thread::scope(|scope| {
        let (following, is_over) = (&following, &is_over);
        // With the thread its end of the channel goes, and the loop below ends.
        scope.spawn(move || follow(following, args, is_over, &taken));
        let mut printer = Printer { args, symboliser: Symboliser::default(), said: Vec::new() };
        let printed = takes.into_iter().try_for_each(|taken| match taken {
            Err(LiveError::NotServing(..) | LiveError::Io(..)) if has_ended(&connection) => {
                Ok(writeln!(notes, "about-memory: the program has ended")?)
            }
            taken => printer.print(&taken?, out, notes),
        });
        // Nobody takes what would still come.
        is_over.store(true, Relaxed);
        printed
    })
}

/// Takes the log at intervals and hands it on. While whoever prints is behind, it stays in the program, which keeps the newest.
fn follow(
    following: &Following<'_>,
    args: &LogArgs,
    is_over: &AtomicBool,
    taken: &SyncSender<Result<Taken, LiveError>>,
) {
    let end = (!args.follow).then(|| Instant::now() + args.seconds);
    let mut due = Instant::now() + args.every;
    let mut waiting = None;
    loop {
        let goes_on = wait(due.min(Instant::now() + STAY), end, is_over);
        let is_due = Instant::now() >= due || !goes_on;
        let asked = if waiting.is_none() && is_due {
            due = Instant::now() + args.every;
            following.take().map(|taken| waiting = Some(taken))
        } else {
            following.stay()
        };
        if let Err(error) = asked {
            let _ = taken.send(Err(error));
            return;
        }
        waiting = waiting.and_then(|log| match taken.try_send(Ok(log)) {
            Err(TrySendError::Full(log)) => log.ok(),
            _ => None,
        });
        if !goes_on {
            // Who does not listen any more has seen enough.
            let _ = waiting.map(|log| taken.send(Ok(log)));
            return;
        }
    }
}

/// Waits, and says whether to go on after the next look.
fn wait(next: Instant, end: Option<Instant>, is_over: &AtomicBool) -> bool {
    /// How often it is looked whether somebody wants to stop.
    const STEP: Duration = Duration::from_millis(20);
    let next = end.map_or(next, |end| end.min(next));
    while Instant::now() < next && !is_over.load(Relaxed) {
        thread::sleep(STEP.min(next.saturating_duration_since(Instant::now())));
    }
    !is_over.load(Relaxed) && end.is_none_or(|end| Instant::now() < end)
}

fn has_ended(connection: &Connection) -> bool {
    connection.ask(&Request::new("ping")).is_err()
}

/// Looks up and prints what was taken.
struct Printer<'a> {
    args: &'a LogArgs,
    symboliser: Symboliser,
    /// What has been said of symbols.
    said: Vec<String>,
}

impl Printer<'_> {
    fn print(
        &mut self,
        taken: &Taken,
        out: &mut dyn Write,
        notes: &mut dyn Write,
    ) -> Result<(), Failure> {
        let mut dump = read::read_slice(&taken.dump)?;
        for note in self.symboliser.symbolicate(&mut dump).notes {
            if !self.said.contains(&note) {
                // Standard error is for people: that nobody reads it must not stop the log.
                let _ = writeln!(notes, "{note}");
                self.said.push(note);
            }
        }
        if taken.lost > 0 {
            entry::write_lost(taken.lost, self.args.json, out)?;
        }
        for (block, time) in dump.blocks.iter().zip(&taken.times) {
            let entry = Entry::new(&dump, block, *time);
            if self.args.json {
                entry.write_json(out)?;
            } else {
                entry.write(self.args.frames, out)?;
            }
        }
        Ok(out.flush()?)
    }
}

/// A log that the program keeps for us; dropping this ends it.
struct Following<'c> {
    connection: &'c Connection,
    number: u64,
}

/// What the program has to say.
struct Taken {
    lost: u64,
    /// Microseconds since 1970, for each block of the dump.
    times: Vec<Option<u64>>,
    dump: Vec<u8>,
}

#[derive(Deserialize)]
struct WireBegun {
    number: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireLog {
    lost: u64,
    times_us: Vec<Option<u64>>,
}

impl<'c> Following<'c> {
    fn begin(connection: &'c Connection, args: &LogArgs) -> Result<Self, LiveError> {
        let mut request =
            Request::new("log").with("do", "begin").with("length", args.length.to_string());
        if let Some(probability) = args.probability {
            request = request.with("probability", probability.to_string());
        }
        if let Some(bytes) = args.sample_bytes {
            request = request.with("sample-bytes", bytes.to_string());
        }
        let parts = connection.ask(&request)?;
        let begun: WireBegun = parse(connection, &parts)?;
        Ok(Following { connection, number: begun.number })
    }

    fn request(&self, what: &str) -> Request {
        Request::new("log").with("do", what).with("number", self.number.to_string())
    }

    fn stay(&self) -> Result<(), LiveError> {
        self.connection.ask(&self.request("stay")).map(drop)
    }

    fn take(&self) -> Result<Taken, LiveError> {
        let mut parts = self.connection.ask(&self.request("take"))?;
        let WireLog { lost, times_us } = parse(self.connection, &parts)?;
        let dump = parts.pop().map_or_else(Vec::new, |part| part.bytes);
        Ok(Taken { lost, times: times_us, dump })
    }
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        // A program that cannot be told takes us to have gone.
        let _ = self.connection.ask(&self.request("end"));
    }
}

/// The first part of an answer.
fn parse<T: for<'de> Deserialize<'de>>(
    connection: &Connection,
    parts: &[Part],
) -> Result<T, LiveError> {
    let bytes = parts.first().map_or(&[][..], |part| &part.bytes);
    serde_json::from_slice(bytes)
        .map_err(|error| LiveError::Garbled(connection.pid(), error.to_string()))
}
