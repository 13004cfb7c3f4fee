//! The heap of the running program for `go tool pprof` and for stores of profiles, to be mounted in any server.
//!
//! Both functions take a dump while the program goes on, look up its functions and lines in the program's own file, and answer
//! with a gzipped profile. What they allocate meanwhile is in no dump. They take from milliseconds to seconds: call them on a
//! thread that may wait (`tokio::task::spawn_blocking`).
//!
//! Mount [`heap`] at `/debug/pprof/heap` and [`allocs`] at `/debug/pprof/allocs`, and start the program with
//! `DMD=--mode=profile`, or have it call [`dmd::start`](crate::start). Values are those of all blocks: samples are
//! extrapolated without bias before they are added up. A profile says only what is known: live blocks always, all that were
//! ever allocated in the mode `cumulative` alone.
//!
//! An answer tells the names of functions, types and reporters, and costs the program some work: mount it where only those
//! who run the program can ask.
//!
//! The query is that of Go's endpoints:
//!
//! | | |
//! |---|---|
//! | `seconds=N` | what grows during so many seconds, less than an hour: blocks that come count for, those that go against |
//! | `debug=1` | a text for people: the heap by stack and type |
//! | `gc=1` | nothing: there is no garbage to collect |
//!
//! # Examples
//!
//! ```
//! dmd::global_allocator!();
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! dmd::start("--mode=profile --sample-bytes=64K".parse()?)?;
//! let words: Vec<String> = (0..10_000).map(|number| format!("word {number}")).collect();
//! let answer = dmd::pprof::heap("");
//! assert_eq!((answer.status, answer.content_type), (200, "application/octet-stream"));
//! # drop(words);
//! # Ok(())
//! # }
//! ```

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use memreport::__private::{Findings, as_own};
use memreport::Collector;

use crate::Dump;
use crate::sample::plan;
use memreport_analysis::export::pprof::{Values, write_growth, write_with};
use memreport_analysis::heap::browse::{BrowseOptions, browse, write_text};
use memreport_analysis::heap::{Frames, Heap, HeapOptions};
use memreport_analysis::read;
use memreport_analysis::read::ReadError;
use memreport_analysis::symbols::Found;

/// What a server is to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Response {
    /// The status: 200, 400 for a query that makes no sense, 500, or 503 while DMD sleeps.
    pub status: u16,
    /// The media type.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
    /// What could not be found out, as sentences for a log.
    pub notes: Vec<String>,
}

/// The heap, to be opened on what lives.
#[must_use]
pub fn heap(query: &str) -> Response {
    respond(query, Values::Live)
}

/// The heap, to be opened on what was allocated, if that is known. Stores of profiles ask for this one.
#[must_use]
pub fn allocs(query: &str) -> Response {
    respond(query, Values::Allocated)
}

const TEXT: &str = "text/plain; charset=utf-8";

fn respond(query: &str, opens_on: Values) -> Response {
    let Query { seconds, is_text } = match Query::parse(query) {
        Ok(query) => query,
        Err(words) => return refusal(400, &words),
    };
    if !plan::plan().is_awake() {
        let words =
            "DMD sleeps: start the program with DMD=--mode=profile, or have it call dmd::start";
        return refusal(503, words);
    }
    match answer(seconds, is_text, opens_on) {
        Ok(response) => response,
        Err(error) => refusal(500, &format!("the dump cannot be read: {error}")),
    }
}

fn answer(seconds: u64, is_text: bool, opens_on: Values) -> Result<Response, ReadError> {
    let mut notes = Vec::new();
    let first = if seconds == 0 {
        None
    } else {
        let first = take(Frames::All, &mut notes)?;
        thread::sleep(Duration::from_secs(seconds));
        Some(first)
    };
    // A text is for people.
    let heap = take(if is_text { Frames::Own } else { Frames::All }, &mut notes)?;
    as_own(move || {
        let mut body = Vec::new();
        match &first {
            _ if is_text => {
                let options = BrowseOptions::default();
                write_text(&heap, &browse(&heap, &options), &options, &mut body)
            }
            Some(first) => write_growth(first, &heap, opens_on, &mut body),
            None => write_with(&heap, opens_on, &mut body),
        }
        .map_err(ReadError::Io)?;
        let content_type = if is_text { TEXT } else { "application/octet-stream" };
        Ok(Response { status: 200, content_type, body, notes })
    })
}

/// The heap of this moment, its frames looked up.
fn take(frames: Frames, notes: &mut Vec<String>) -> Result<Heap, ReadError> {
    // What reporters keep for themselves is the program's.
    let snapshot = Collector::default().moment("asked for a profile").snapshot();
    as_own(|| {
        let mut json = Vec::new();
        if let Some(dump) = Dump::of(&snapshot) {
            dump.write(&mut json).map_err(ReadError::Io)?;
        }
        drop(snapshot);
        let mut dump = read::read_slice(&json)?;
        drop(json);
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        let report = found.get_or_insert_default().symbolicate(&mut dump);
        notes.extend(dump.notes.drain(..).chain(report.notes));
        let mut options = HeapOptions::default();
        (options.frames, options.taken) = (frames, Some(SystemTime::now()));
        // Blocks of all classes are wanted, so there is none that the dump could lack.
        Heap::new(&dump, &options).map_err(|error| ReadError::Io(std::io::Error::other(error)))
    })
}

/// What was looked up for earlier profiles.
static FOUND: Mutex<Option<Found>> = Mutex::new(None);

fn refusal(status: u16, words: &str) -> Response {
    let body = format!("{words}\n").into_bytes();
    Response { status, content_type: TEXT, body, notes: Vec::new() }
}

#[derive(Debug, PartialEq, Eq)]
struct Query {
    seconds: u64,
    is_text: bool,
}

impl Query {
    fn parse(query: &str) -> Result<Self, String> {
        const HOUR: u64 = 3600;
        let mut parsed = Query { seconds: 0, is_text: false };
        let query = query.strip_prefix('?').unwrap_or(query);
        for (key, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            let number =
                || value.parse::<u64>().map_err(|_| format!("{key} is {value:?}: give a number"));
            match key {
                "seconds" => parsed.seconds = number()?,
                "debug" => parsed.is_text = number()? > 0,
                // What else pprof's clients may ask for changes nothing here.
                _ => {}
            }
        }
        match parsed {
            Query { seconds: HOUR.., .. } => Err("seconds: at most 3599".to_owned()),
            Query { seconds: 1.., is_text: true } => {
                Err("seconds and debug: there is no text of what grows".to_owned())
            }
            _ => Ok(parsed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Query, heap};

    #[test]
    fn queries_are_go_s() {
        let ok = |seconds, is_text| Ok(Query { seconds, is_text });
        for (query, expected) in [
            ("", ok(0, false)),
            ("?gc=1", ok(0, false)),
            ("seconds=5&gc=1", ok(5, false)),
            ("debug=1", ok(0, true)),
            ("debug=0&seconds=0", ok(0, false)),
            ("seconds=x", Err("seconds is \"x\": give a number".to_owned())),
            ("seconds=-1", Err("seconds is \"-1\": give a number".to_owned())),
            ("seconds=3600", Err("seconds: at most 3599".to_owned())),
            (
                "seconds=1&debug=2",
                Err("seconds and debug: there is no text of what grows".to_owned()),
            ),
        ] {
            assert_eq!(Query::parse(query), expected, "{query}");
        }
    }

    #[test]
    fn asleep_is_said_with_the_remedy() {
        let answer = heap("");
        assert_eq!((answer.status, answer.content_type), (503, "text/plain; charset=utf-8"));
        assert!(answer.body.starts_with(b"DMD sleeps: start the program with DMD=--mode=profile"));
        assert_eq!(heap("seconds=x").status, 400);
    }
}
