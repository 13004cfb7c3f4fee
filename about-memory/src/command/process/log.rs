//! `about-memory log PROGRAM`: prints the allocations of a running program while they happen.

mod session;

use crate::command::flags::{candidates, seconds};
use crate::context::Context;
use crate::error::Failure;
use crate::input::dump::DumpReader;
use crate::input::live::{self, Connection, LiveError, Target};
use crate::render::process::log::{Entry, write_lost};
use clap::Args;
use memreport::serve::Request;
use memreport_analysis::analysis::Crates;
use memreport_analysis::read;
use session::{LogOptions, LogSession, Taken};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::thread;
use std::time::{Duration, Instant};

/// `about-memory log`
#[derive(Debug, Args)]
pub struct LogArgs {
    /// A running program, by pid or name; see `about-memory ps`
    #[arg(value_name = "PID|NAME", add = candidates::programs())]
    program: Target,
    /// Continue until Ctrl-C, or until the program ends
    #[arg(long, conflicts_with = "seconds")]
    follow: bool,
    /// Without `--follow`: stop after this time
    #[arg(long = "for", value_name = "TIME", default_value = "1", value_parser = seconds)]
    seconds: Duration,
    /// The allocations to print.
    #[command(flatten)]
    options: LogOptions,
    /// Take new entries at this interval
    #[arg(long, value_name = "TIME", default_value = "0.2", value_parser = seconds)]
    every: Duration,
    /// Print N frames of each stack; 0 is all
    #[arg(long, value_name = "N", default_value_t = 3)]
    frames: usize,
    /// Print a line of JSON for each allocation, with the whole stack
    #[arg(long, conflicts_with = "frames")]
    json: bool,
}

/// The interval of keep-alive messages. Without them, the program ends the log.
const STAY: Duration = Duration::from_secs(1);

/// The largest number of logs that are taken and not printed yet.
const AHEAD: usize = 4;

impl LogArgs {
    /// Prints the log until its time is over, Ctrl-C is pressed or the program ends.
    ///
    /// # Errors
    /// The program cannot be asked or does not track, or the answer cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let is_over = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&is_over))?;
        }
        let connection = live::choose(&self.program, live::DEFAULT_TIMEOUT)?;
        let session = LogSession::begin(&connection, &self.options)?;
        let (taken, takes) = mpsc::sync_channel(AHEAD);
        thread::scope(|scope| {
            let (session, is_over, args) = (&session, &is_over, &self);
            // The thread owns the sender: its end closes the channel and ends the loop below.
            scope.spawn(move || follow(session, args, is_over, &taken));
            let mut printer = Printer { args, reader: DumpReader::default() };
            let printed = takes.into_iter().try_for_each(|taken| match taken {
                Err(LiveError::NotServing(..) | LiveError::Io(..)) if has_ended(&connection) => {
                    Ok(writeln!(context.notes, "note: the program has ended")?)
                }
                taken => printer.print(&taken?, context),
            });
            // After an error, stop the thread: nobody receives.
            is_over.store(true, Relaxed);
            printed
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Takes the log at intervals and sends it to the printer. Back-pressure: while the printer is
/// behind, the entries stay in the program, which keeps the newest.
fn follow(
    session: &LogSession<'_>,
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
            session.take().map(|taken| waiting = Some(taken))
        } else {
            session.stay()
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
            // A closed channel means that the printer has stopped.
            let _ = waiting.map(|log| taken.send(Ok(log)));
            return;
        }
    }
}

/// Waits for the next time. Returns whether to continue after it.
fn wait(next: Instant, end: Option<Instant>, is_over: &AtomicBool) -> bool {
    /// The interval at which the stop flag is read.
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

/// Symbolicates and prints the entries.
struct Printer<'a> {
    args: &'a LogArgs,
    reader: DumpReader,
}

impl Printer<'_> {
    fn print(&mut self, taken: &Taken, context: &mut Context<'_>) -> Result<(), Failure> {
        let mut dump = read::read_slice(&taken.dump)?;
        for note in self.reader.symbolicate(&mut dump) {
            // A closed standard error must not stop the log.
            let _ = writeln!(context.notes, "note: {note}");
        }
        if taken.lost > 0 {
            write_lost(taken.lost, self.args.json, &mut context.out)?;
        }
        let crates = Crates::new(&dump);
        for (block, time) in dump.blocks.iter().zip(&taken.times) {
            if !self.args.options.prints(&crates, &block) {
                continue;
            }
            let entry = Entry::new(&dump, block, *time);
            if self.args.json {
                entry.write_json(&mut context.out.json())?;
            } else {
                entry.write(self.args.frames, &mut context.out)?;
            }
        }
        Ok(context.out.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_at_the_next_time_at_the_end_or_when_it_is_over() {
        let (short, long) = (Duration::from_millis(50), Duration::from_secs(3600));
        let over = |is_over| AtomicBool::new(is_over);
        let begin = Instant::now();
        assert!(wait(begin + short, None, &over(false)), "it goes on");
        assert!(begin.elapsed() >= short);
        let begin = Instant::now();
        assert!(wait(begin + short, Some(begin + long), &over(false)), "the end is far");
        assert!(begin.elapsed() >= short);
        let begin = Instant::now();
        assert!(!wait(begin + long, Some(begin + short), &over(false)), "this is the end");
        assert!((short..long).contains(&begin.elapsed()));
        assert!(!wait(Instant::now() + long, None, &over(true)), "Ctrl-C was pressed");
    }
}
