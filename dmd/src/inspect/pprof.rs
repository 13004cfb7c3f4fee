//! The heap of the running program as a pprof profile, for any HTTP server.
//!
//! Both functions take a dump while the program runs, symbolicate it from the program's own file,
//! and return a gzipped profile. Memory that they allocate is in no dump. They take milliseconds to
//! seconds, so call them on a thread that may block (`tokio::task::spawn_blocking`).
//!
//! Mount [`heap`] at `/debug/pprof/heap` and [`allocs`] at `/debug/pprof/allocs`, and start the
//! program with `DMD=--mode=profile`, or call [`dmd::start`](crate::start). Values are estimates
//! for all blocks: each sample is scaled without bias before the sums are taken. Live blocks are
//! always included; all blocks that were ever allocated are included only in mode `cumulative`.
//!
//! A profile contains the names of functions, types and reporters, and costs the program work.
//! Mount it where only the operators of the program have access.
//!
//! The query is that of Go's endpoints:
//!
//! | | |
//! |---|---|
//! | `seconds=N` | the growth during N seconds, less than an hour: allocated minus freed blocks |
//! | `debug=1` | a text instead of a profile: the heap by stack and type |
//! | `spans=1` | samples have the labels `trace_id` and `span_id`, if `ScopeLayer` links scopes |
//! | `gc=1` | no effect: there is no garbage collector |
//!
//! Each sample has the labels `thread`, `scope`, `type`, `reported` and `reporter`, and the
//! attributes of OpenTelemetry's variables `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`, with
//! `_` for dots: `service_name`, `service_version`.
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

mod query;

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use memreport::__private::{Findings, as_own};
use memreport::Collector;

use self::query::Query;
use crate::Dump;
use crate::mem::sys;
use crate::sample::plan;
use memreport_analysis::export::pprof::{Values, write_growth, write_with};
use memreport_analysis::heap::browse::{BrowseOptions, browse, write_text};
use memreport_analysis::heap::{Frames, Heap, HeapOptions, SampleLabel};
use memreport_analysis::read;
use memreport_analysis::read::ReadError;
use memreport_analysis::symbols::SymbolCache;

/// The response for a server to send.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Response {
    /// The HTTP status: 200, 400 for an invalid query, 500 for an internal error, or 503 while DMD
    /// is asleep.
    pub status: u16,
    /// The media type.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
    /// Sentences for a log about missing symbols and other gaps.
    pub notes: Vec<String>,
}

/// Returns the heap profile, which viewers open at the live blocks.
#[must_use]
pub fn heap(query: &str) -> Response {
    respond(query, Values::Live)
}

/// Returns the heap profile, which viewers open at all allocations, if these are known.
///
/// Continuous profilers request this one.
///
/// ```
/// dmd::global_allocator!();
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// dmd::start("--mode=cumulative".parse()?)?;
/// assert_eq!(dmd::pprof::allocs("gc=1").status, 200);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn allocs(query: &str) -> Response {
    respond(query, Values::Allocated)
}

const TEXT: &str = "text/plain; charset=utf-8";

fn respond(query: &str, opens_on: Values) -> Response {
    let query = match Query::parse(query) {
        Ok(query) => query,
        Err(message) => return error_response(400, &message),
    };
    if !plan::plan().is_awake() {
        let message =
            "DMD sleeps: start the program with DMD=--mode=profile, or have it call dmd::start";
        return error_response(503, message);
    }
    match profile(&query, opens_on) {
        Ok(response) => response,
        Err(error) => error_response(500, &format!("the dump cannot be read: {error}")),
    }
}

fn profile(query: &Query, opens_on: Values) -> Result<Response, ReadError> {
    let Query { seconds, is_text, has_spans } = *query;
    // The text has no labels.
    let mut options = HeapOptions::default();
    if !is_text {
        let variable = |name| sys::variable(name)?.into_string().ok();
        let (list, name) = (variable("OTEL_RESOURCE_ATTRIBUTES"), variable("OTEL_SERVICE_NAME"));
        options.labels = SampleLabel::of_resource(list.as_deref(), name.as_deref());
        options.spans = has_spans;
    }
    let mut notes = Vec::new();
    let first = if seconds == 0 {
        None
    } else {
        let first = take_heap(options.clone(), &mut notes)?;
        thread::sleep(Duration::from_secs(seconds));
        Some(first)
    };
    // The text shows only the program's own frames.
    options.frames = if is_text { Frames::Own } else { Frames::All };
    let heap = take_heap(options, &mut notes)?;
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

/// Takes a dump of this moment and symbolicates it.
fn take_heap(mut options: HeapOptions, notes: &mut Vec<String>) -> Result<Heap, ReadError> {
    // Not inside `as_own`: memory that reporters allocate and keep belongs to the program.
    let snapshot = Collector::default().moment("requested for a profile").snapshot();
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
        options.taken = Some(SystemTime::now());
        // Cannot fail: all classes of blocks are selected, so the dump lacks none.
        Heap::new(&dump, &options).map_err(|error| ReadError::Io(std::io::Error::other(error)))
    })
}

/// The symbols of earlier profiles.
static FOUND: Mutex<Option<SymbolCache>> = Mutex::new(None);

fn error_response(status: u16, message: &str) -> Response {
    let body = format!("{message}\n").into_bytes();
    Response { status, content_type: TEXT, body, notes: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::heap;

    #[test]
    fn while_asleep_the_response_names_the_remedy() {
        let answer = heap("");
        assert_eq!((answer.status, answer.content_type), (503, "text/plain; charset=utf-8"));
        assert!(answer.body.starts_with(b"DMD sleeps: start the program with DMD=--mode=profile"));
        assert_eq!(heap("seconds=x").status, 400);
    }
}
