//! The socket command `log`: an observer for each client.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use memreport::__private::as_own;
use memreport::serve::{Answer, Part, Request};
use serde_json::{Value, json};

use super::leases::Leases;
use crate::dump::write_log;
use crate::observe::{self, Allocation, Observer, Sampling};

memreport::command!(
    "log",
    "Observes single allocations: do=begin (with probability=, sample-bytes=, length=, thread=, tid= or scope=), do=take, do=stay and do=end with number=.",
    |request| as_own(|| log(request))
);

static OBSERVERS: Leases<Observer> = Leases::new(Duration::from_secs(3), "dmd-log");

fn log(request: &Request) -> Answer {
    match request.get("do") {
        Some("begin") => begin(request),
        Some("take") => take(request),
        Some("stay") => OBSERVERS.renew(request, |_| Vec::new()),
        Some("end") => OBSERVERS.end(request).map(|_| Vec::new()),
        _ => Err("say do=begin, do=take, do=stay or do=end".to_owned()),
    }
}

/// Starts an observer for a new client.
fn begin(request: &Request) -> Answer {
    let mut observer = Observer::sampling(sampling(request)?).map_err(|error| error.to_string())?;
    if let Some(length) = request.get("length") {
        let length = length.parse().map_err(|_| format!("length={length} is no number"))?;
        observer.set_max_log_length(length).map_err(|error| error.to_string())?;
    }
    observer.limit_to(part(request)?);
    let number = OBSERVERS.hold(observer)?;
    let lease = u64::try_from(OBSERVERS.length().as_millis()).unwrap_or(u64::MAX);
    Ok(vec![answer("log", &json!({ "number": number, "leaseMs": lease }))])
}

/// Returns the part of the program that the request names.
fn part(request: &Request) -> Result<observe::Part, String> {
    let mut part = observe::Part::default();
    if let Some(name) = request.get("thread") {
        part = part.thread(name);
    }
    if let Some(text) = request.get("tid") {
        part = part.thread_id(text.parse().map_err(|_| format!("tid={text} is no number"))?);
    }
    if let Some(name) = request.get("scope") {
        part = part.scope(name);
    }
    Ok(part)
}

fn sampling(request: &Request) -> Result<Sampling, String> {
    match (request.get("probability"), request.get("sample-bytes")) {
        (None, None) => Ok(Sampling::ALL),
        (Some(text), None) => match text.parse() {
            Ok(probability) => Ok(Sampling::Blocks(probability)),
            Err(_) => Err(format!("probability={text} is no number")),
        },
        (None, Some(text)) => match text.parse() {
            Ok(bytes) => Ok(Sampling::Bytes(bytes)),
            Err(_) => Err(format!("sample-bytes={text} is no number of bytes")),
        },
        _ => Err("a probability and sample-bytes exclude each other".to_owned()),
    }
}

/// Answers with the entries of a client's log, as a dump.
fn take(request: &Request) -> Answer {
    let log = OBSERVERS.renew(request, Observer::drain_allocations_log)?;
    let log = log.map_err(|error| error.to_string())?;
    let (now, instant) = (SystemTime::now(), Instant::now());
    let since_1970 = |entry: &Allocation| {
        let ago =
            entry.time().map_or(Duration::ZERO, |time| instant.saturating_duration_since(time));
        let time = now.checked_sub(ago)?.duration_since(UNIX_EPOCH).ok()?;
        u64::try_from(time.as_micros()).ok()
    };
    let times: Vec<_> = log.entries.iter().map(since_1970).collect();
    let summary = json!({ "overflowed": log.overflowed, "lost": log.lost, "timesUs": times });
    let mut dump = Vec::new();
    write_log(&log.entries, &mut dump).map_err(|error| error.to_string())?;
    Ok(vec![answer("log", &summary), Part { name: "dump".into(), bytes: dump }])
}

fn answer(name: &str, value: &Value) -> Part {
    Part { name: name.into(), bytes: value.to_string().into_bytes() }
}
