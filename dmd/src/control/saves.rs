//! Reports and dumps at intervals that the environment asks for: of any program with DMD in it, without a line of its code.
//!
//! `MEMREPORT_SAVE="every=10s most=20 into=/var/dumps" DMD=1 ./program` saves a report with its dump at the start and then every
//! ten seconds, and keeps the newest twenty. The program goes on meanwhile; what cannot be saved is said once, and tried again.

use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{env, io, process, thread};

use memreport::__private::{Folder, Limits, as_own};
use memreport::Collector;

/// The environment variable that asks for them.
pub const VARIABLE: &str = "MEMREPORT_SAVE";

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wish {
    every: Duration,
    most: usize,
    into: PathBuf,
}

impl Wish {
    /// The words of the variable, separated by blanks; the folder is the last, and may have blanks in it.
    fn parse(text: &str) -> Result<Self, String> {
        let mut wish = Wish { every: Duration::from_secs(60), most: 20, into: ".".into() };
        let mut left = text.trim();
        while !left.is_empty() {
            let (word, rest) = left.split_once(' ').unwrap_or((left, ""));
            match word.split_once('=') {
                Some(("every", time)) => wish.every = seconds(time).ok_or_else(|| bad(word))?,
                Some(("most", most)) => {
                    let most = most.parse().ok().filter(|most| *most > 0);
                    wish.most = most.ok_or_else(|| bad(word))?;
                }
                Some(("into", folder)) if !folder.is_empty() => {
                    wish.into = left.trim_start_matches("into=").into();
                    break;
                }
                _ => return Err(bad(word)),
            }
            left = rest.trim_start();
        }
        Ok(wish)
    }
}

fn bad(word: &str) -> String {
    format!(
        "bad entry in ${VARIABLE}: '{word}'. It takes every=10s, most=N and, as the last, into=FOLDER"
    )
}

/// `10s`, `0.5s` or `2m`; a number alone is seconds.
fn seconds(text: &str) -> Option<Duration> {
    let (number, unit) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60.0),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let time = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * unit).ok()?;
    (time >= Duration::from_millis(10)).then_some(time)
}

/// Begins to save if the environment asks for it. Before `main`, on the main thread.
pub(crate) fn begin_if_asked() {
    let Some(text) = env::var_os(VARIABLE).filter(|text| !text.is_empty()) else { return };
    let begun = Wish::parse(&text.to_string_lossy()).and_then(|wish| {
        let thread = as_own(|| {
            let thread = thread::Builder::new().name("dmd-save".into());
            thread.spawn(move || as_own(|| save(&wish)))
        });
        thread.map(drop).map_err(|error| error.to_string())
    });
    if let Err(error) = begun {
        say(&error);
    }
}

/// Saves until the program ends.
fn save(wish: &Wish) {
    let limits = Limits { files: wish.most, ..Limits::default() };
    let folder = Folder::new(wish.into.clone(), &program(), limits);
    let mut last_error = None;
    let mut moment = "at the start";
    loop {
        let next = Instant::now() + wish.every;
        let saved = folder.save(&Collector::default().moment(moment).snapshot());
        let error = saved.err().map(|error: io::Error| error.to_string());
        if let Some(error) = error.as_ref().filter(|_| last_error.is_none()) {
            say(error);
        }
        last_error = error;
        moment = "at an interval";
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

fn program() -> String {
    let path = env::current_exe().unwrap_or_default();
    path.file_name().map_or_else(|| "program".into(), |name| name.to_string_lossy().into_owned())
}

#[expect(
    clippy::print_stderr,
    reason = "asked for in the environment, and nobody else is there to be told"
)]
fn say(error: &str) {
    eprintln!("DMD[{}] saves nothing: {error}", process::id());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_understood_or_refused() {
        let wish = |seconds, most, into: &str| {
            Ok(Wish { every: Duration::from_secs_f64(seconds), most, into: into.into() })
        };
        for (text, expected) in [
            ("every=10s", wish(10.0, 20, ".")),
            ("every=0.5 most=3 into=/var/my dumps", wish(0.5, 3, "/var/my dumps")),
            ("  most=1   every=2m ", wish(120.0, 1, ".")),
            ("into=x", wish(60.0, 20, "x")),
        ] {
            assert_eq!(Wish::parse(text), expected, "{text}");
        }
        for word in ["every=", "every=0s", "every=x", "most=0", "most=-1", "into=", "often"] {
            let refusal = Wish::parse(&format!("most=2 {word}")).unwrap_err();
            assert!(refusal.contains(&format!("'{word}'")), "{refusal}");
        }
    }
}
