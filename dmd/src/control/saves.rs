//! Saves reports and dumps at intervals, for any program with DMD's allocator, without code in it.
//!
//! ```sh
//! MEMREPORT_SAVE="every=10s most=20 into=/var/dumps" DMD=1 ./program
//! ```
//!
//! saves a report with its dump at the start and then every ten seconds, and keeps the newest
//! twenty. The program continues to run meanwhile. An error is printed once, and the next interval
//! tries again.

use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{env, io, process, thread};

use memreport::__private::{Folder, Limits, as_own};
use memreport::Collector;

use crate::mem::sys;
use crate::stack::thread::mark_own;

/// The environment variable with the interval, the number of files and the folder.
pub const VARIABLE: &str = "MEMREPORT_SAVE";

/// The options of the environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SaveOptions {
    interval: Duration,
    max_files: usize,
    folder: PathBuf,
}

impl SaveOptions {
    /// Parses words that are separated by blanks. The folder comes last, and may contain blanks.
    fn parse(text: &str) -> Result<Self, String> {
        let mut options =
            SaveOptions { interval: Duration::from_secs(60), max_files: 20, folder: ".".into() };
        let mut left = text.trim();
        while !left.is_empty() {
            let (word, rest) = left.split_once(' ').unwrap_or((left, ""));
            match word.split_once('=') {
                Some(("every", time)) => {
                    options.interval = seconds(time).ok_or_else(|| bad(word))?;
                }
                Some(("most", most)) => {
                    let most = most.parse().ok().filter(|most| *most > 0);
                    options.max_files = most.ok_or_else(|| bad(word))?;
                }
                Some(("into", folder)) if !folder.is_empty() => {
                    options.folder = left.trim_start_matches("into=").into();
                    break;
                }
                _ => return Err(bad(word)),
            }
            left = rest.trim_start();
        }
        Ok(options)
    }
}

fn bad(word: &str) -> String {
    format!(
        "bad entry in ${VARIABLE}: '{word}'. It takes every=10s, most=N and, as the last, into=FOLDER"
    )
}

/// Parses `10s`, `0.5s` or `2m`; a number alone is seconds.
fn seconds(text: &str) -> Option<Duration> {
    let (number, unit) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60.0),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let time = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * unit).ok()?;
    // At most a year: the clock cannot represent every moment.
    let longest = Duration::from_secs(366 * 24 * 3600);
    (Duration::from_millis(10)..=longest).contains(&time).then_some(time)
}

/// Starts saving if the environment variable is set. Runs before `main`, on the main thread.
pub(crate) fn start_from_variable() {
    let Some(text) = sys::variable(VARIABLE) else { return };
    let started = SaveOptions::parse(&text.to_string_lossy()).and_then(|options| {
        let thread = as_own(|| {
            let thread = thread::Builder::new().name("dmd-save".into());
            thread.spawn(move || {
                mark_own();
                as_own(|| save(&options));
            })
        });
        thread.map(drop).map_err(|error| error.to_string())
    });
    if let Err(error) = started {
        print_error(&error);
    }
}

/// Saves at each interval until the program ends.
fn save(options: &SaveOptions) {
    let limits = Limits { files: options.max_files, ..Limits::default() };
    let folder = Folder::new(options.folder.clone(), &program(), limits);
    let mut last_error = None;
    let mut moment = "at the start";
    loop {
        let next = Instant::now() + options.interval;
        let saved = folder.save(&Collector::default().moment(moment).snapshot());
        let error = saved.err().map(|error: io::Error| error.to_string());
        if let Some(error) = error.as_ref().filter(|_| last_error.is_none()) {
            print_error(error);
        }
        last_error = error;
        moment = "at an interval";
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// Returns the file name of the program.
fn program() -> String {
    let path = env::current_exe().unwrap_or_default();
    path.file_name().map_or_else(|| "program".into(), |name| name.to_string_lossy().into_owned())
}

#[expect(
    clippy::print_stderr,
    reason = "set in the environment, and there is no caller to return an error to"
)]
fn print_error(error: &str) {
    eprintln!("DMD[{}] saves nothing: {error}", process::id());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed_or_rejected() {
        let options = |seconds, max_files, folder: &str| {
            let interval = Duration::from_secs_f64(seconds);
            Ok(SaveOptions { interval, max_files, folder: folder.into() })
        };
        for (text, expected) in [
            ("every=10s", options(10.0, 20, ".")),
            ("every=0.5 most=3 into=/var/my dumps", options(0.5, 3, "/var/my dumps")),
            ("  most=1   every=2m ", options(120.0, 1, ".")),
            ("into=x", options(60.0, 20, "x")),
        ] {
            assert_eq!(SaveOptions::parse(text), expected, "{text}");
        }
        for word in
            ["every=", "every=0s", "every=x", "every=1e19", "most=0", "most=-1", "into=", "often"]
        {
            let error = SaveOptions::parse(&format!("most=2 {word}")).unwrap_err();
            assert!(error.contains(&format!("'{word}'")), "{error}");
        }
    }
}
