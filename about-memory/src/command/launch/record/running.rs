//! Records a running program at its socket.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use memreport::serve::Request;
use serde::Deserialize;

use super::{RecordArgs, summarize};
use crate::context::Context;
use crate::error::{Failure, exit_code};
use crate::input::live::{self, LiveError, Target};
use crate::input::progress::Progress;

/// The interval of keep-alive messages. Without them, the program ends the recording.
const STAY: Duration = Duration::from_secs(2);

/// The interval at which the stop flag is read.
const STEP: Duration = Duration::from_millis(20);

/// Records until the time is over, Ctrl-C is pressed or the program ends. Prints a summary.
///
/// # Errors
///
/// The program cannot be asked or refuses, the recording cannot be read, or the answer cannot be
/// written.
pub(super) fn record(
    args: &RecordArgs,
    process: &Target,
    context: &mut Context<'_>,
) -> Result<ExitCode, Failure> {
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_over))?;
    }
    let connection = live::choose(process, live::DEFAULT_TIMEOUT).map_err(|error| match error {
        LiveError::NoName(_) | LiveError::NotASocket(_) => Failure::from(format!(
            "{error}; to start a program, write `about-memory record -- PROGRAM`"
        )),
        error => error.into(),
    })?;
    let request = begin(args)?;
    let begun: WireBegun = connection.parse(&connection.ask(&request)?)?;
    let named = |what: &str| {
        Request::new("record").with("do", what).with("number", begun.number.to_string())
    };
    writeln!(
        context.notes,
        "note: recording process {} into {}{}",
        connection.pid(),
        args.options.output.display(),
        if args.length.is_none() { "; Ctrl-C ends it" } else { "" }
    )?;
    let end = args.length.map(|length| Instant::now() + length);
    let mut next = Instant::now() + STAY;
    let step = Progress::start("recording", None);
    let mut rate = Rate::default();
    let stopped = loop {
        let now = Instant::now();
        if is_over.load(Relaxed) || end.is_some_and(|end| end <= now) {
            break connection.ask(&named("end"));
        }
        if next <= now {
            next = now + STAY;
            match connection.ask(&named("stay")) {
                Ok(stayed) => {
                    let written = connection.parse(&stayed).unwrap_or_default();
                    step.set_words(rate.words(now, written, &args.options.output));
                }
                failed => break failed,
            }
        }
        thread::sleep(STEP);
    };
    drop(step);
    match stopped {
        Err(LiveError::NotServing(..) | LiveError::Io(..) | LiveError::NoProcess(_))
            if connection.ask(&Request::new("ping")).is_err() =>
        {
            writeln!(context.notes, "note: the program has ended")?;
        }
        stopped => drop(stopped?),
    }
    Ok(exit_code(!summarize(&args.options.output, args.options.top, context)?))
}

/// The events at the last look, for their rate.
#[derive(Default)]
struct Rate(Option<(Instant, u64)>);

impl Rate {
    /// Returns how far the recording is: its size, the events per second, and the lost ones.
    fn words(&mut self, now: Instant, written: WireWritten, output: &Path) -> String {
        let size = output.metadata().map_or(0, |found| found.len());
        let mut words = format!("recording: {size} bytes");
        if let (Some(events), Some((then, before))) = (written.events, self.0) {
            let seconds = (now - then).as_secs_f64().max(0.001);
            let _ =
                write!(words, ", {:.0} events/s", events.saturating_sub(before) as f64 / seconds);
        }
        if let Some(lost) = written.lost {
            let _ = write!(words, ", {lost} lost");
        }
        self.0 = written.events.map(|events| (now, events));
        words
    }
}

/// Returns the request that begins the recording.
fn begin(args: &RecordArgs) -> Result<Request, Failure> {
    // The program has another working directory.
    let path = std::path::absolute(&args.options.output)?;
    let path = path.to_str().ok_or("the program can only be told file names that are UTF-8")?;
    let folder = Path::new(path).parent().filter(|folder| !folder.is_dir());
    if let Some(folder) = folder {
        return Err(format!(
            "{}: there is no such folder; name another file with --output",
            folder.display()
        )
        .into());
    }
    let mut request = Request::new("record").with("do", "begin").with("path", path);
    for (is_chosen, name) in
        [(args.options.lossy, "lossy"), (args.options.free_stacks, "free-stacks")]
    {
        if is_chosen {
            request = request.with(name, "yes");
        }
    }
    let mut words: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    if words.is_empty() {
        let of_environment = std::env::var("DMD").unwrap_or_default();
        words.extend(Some(of_environment).filter(|text| !text.is_empty()).map(Into::into));
    }
    if !words.is_empty() {
        request = request.with("options", words.join(" "));
    }
    Ok(request)
}

/// The answer to a keep-alive message; of an older program it is empty.
#[derive(Clone, Copy, Default, Deserialize)]
struct WireWritten {
    events: Option<u64>,
    lost: Option<u64>,
}

/// The answer to the begin of a recording.
#[derive(Deserialize)]
struct WireBegun {
    number: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        args: RecordArgs,
    }

    fn request(words: &[&str]) -> Result<Request, Failure> {
        let words = [&["record", "4711"], words].concat();
        begin(&Words::try_parse_from(words).unwrap().args)
    }

    #[test]
    fn the_program_learns_where_and_how_to_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.gz").into_os_string().into_string().unwrap();
        let begun = |words: &[&str]| request(&[&["--output", &path], words].concat()).unwrap();
        let plain = Request::new("record").with("do", "begin").with("path", &path);
        let chosen = begun(&["--lossy", "--free-stacks", "--", "--mode=live", "--stacks=none"]);
        assert_eq!(chosen.command, "record");
        let all = plain.clone().with("lossy", "yes").with("free-stacks", "yes");
        assert_eq!(chosen.arguments, all.with("options", "--mode=live --stacks=none").arguments);
        let lossy = begun(&["--lossy", "--", "--mode=live"]);
        let expected = plain.with("lossy", "yes").with("options", "--mode=live");
        assert_eq!(lossy.arguments, expected.arguments);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = request(&["--output", "/no/such/folder/r.gz"]).unwrap_err().to_string();
        let expected = "/no/such/folder: there is no such folder; name another file with --output";
        assert_eq!(error, expected);
    }

    #[test]
    fn the_progress_has_size_rate_and_losses() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [0; 1234]).unwrap();
        let (mut rate, begin) = (Rate::default(), Instant::now());
        let mut words = |seconds, events, lost| {
            rate.words(
                begin + Duration::from_secs(seconds),
                WireWritten { events, lost },
                file.path(),
            )
        };
        assert_eq!(words(0, Some(100), None), "recording: 1234 bytes");
        assert_eq!(words(2, Some(700), Some(5)), "recording: 1234 bytes, 300 events/s, 5 lost");
        assert_eq!(words(3, None, None), "recording: 1234 bytes");
        // The rate is of what came since the last look.
        assert_eq!(words(4, Some(900), None), "recording: 1234 bytes");
        assert_eq!(words(5, Some(950), None), "recording: 1234 bytes, 50 events/s");
    }
}
