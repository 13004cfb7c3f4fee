//! The socket command `log`: an observer for each client, with a lease that every request renews.
//!
//! A client that was killed renews nothing, so its observer ends with the lease.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use memreport::__private::as_own;
use memreport::serve::{Answer, Part, Request};
use serde_json::{Value, json};

use crate::dump::write_log;
use crate::observe::{self, Allocation, Observer, Sampling};
use crate::stack::thread::mark_own;

memreport::command!(
    "log",
    "Observes single allocations: do=begin (with probability=, sample-bytes=, length=, thread=, tid= or scope=), do=take, do=stay and do=end with number=.",
    |request| as_own(|| log(request))
);

/// The time after which an observer without requests ends.
const LEASE: Duration = Duration::from_secs(3);

/// A client that follows a log.
struct Client {
    number: u64,
    observer: Observer,
    lease_end: Instant,
}

impl Client {
    fn renew(&mut self) {
        self.lease_end = Instant::now() + LEASE;
    }
}

static CLIENTS: Mutex<Clients> = Mutex::new(Clients { next: 1, list: Vec::new() });

struct Clients {
    next: u64,
    list: Vec<Client>,
}

impl Clients {
    /// Returns the index of the client that the request names.
    fn index(&self, request: &Request) -> Result<usize, String> {
        let number: Option<u64> = request.get("number").and_then(|number| number.parse().ok());
        let index = self.list.iter().position(|client| Some(client.number) == number);
        index.ok_or_else(|| "nobody follows under this number; begin anew".to_owned())
    }
}

fn clients() -> MutexGuard<'static, Clients> {
    // No code panics under the lock.
    CLIENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn log(request: &Request) -> Answer {
    match request.get("do") {
        Some("begin") => begin(request),
        Some("take") => take(request),
        Some("stay") => {
            let mut clients = clients();
            let index = clients.index(request)?;
            clients.list[index].renew();
            Ok(Vec::new())
        }
        Some("end") => {
            let mut clients = clients();
            let index = clients.index(request)?;
            drop(clients.list.remove(index));
            Ok(Vec::new())
        }
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
    let mut clients = clients();
    let number = clients.next;
    clients.next += 1;
    let is_first = clients.list.is_empty();
    clients.list.push(Client { number, observer, lease_end: Instant::now() + LEASE });
    drop(clients);
    if is_first {
        let watch = thread::Builder::new().name("dmd-log".into()).stack_size(128 * 1024);
        if let Err(error) = watch.spawn(|| {
            mark_own();
            as_own(watch_leases);
        }) {
            remove_client(number);
            return Err(format!("no thread could be started: {error}"));
        }
    }
    Ok(vec![answer(
        "log",
        &json!({ "number": number, "leaseMs": u64::try_from(LEASE.as_millis()).unwrap_or(u64::MAX) }),
    )])
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
    let mut clients = clients();
    let index = clients.index(request)?;
    let client = &mut clients.list[index];
    client.renew();
    let log = client.observer.drain_allocations_log().map_err(|error| error.to_string())?;
    drop(clients);
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

fn remove_client(number: u64) {
    let mut clients = clients();
    clients.list.retain(|client| client.number != number);
}

/// Removes clients whose lease has ended, until there are no clients.
fn watch_leases() {
    loop {
        let mut clients = clients();
        let now = Instant::now();
        clients.list.retain(|client| client.lease_end > now);
        let Some(next) = clients.list.iter().map(|client| client.lease_end).min() else { return };
        drop(clients);
        thread::sleep(next.saturating_duration_since(now));
    }
}
