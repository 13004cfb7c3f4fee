//! Single allocations for somebody outside: an observer for as long as its log is asked for. Who asks no more, because it
//! was killed, is taken to have gone after a while.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use memreport::__private::as_own;
use memreport::serve::{Answer, Part, Request};
use serde_json::{Value, json};

use crate::dump::write_log;
use crate::observe::{Allocation, Observer, Sampling};

memreport::command!(
    "log",
    "Observes single allocations: do=begin (with probability=, sample-bytes= or length=), do=take, do=stay and do=end with number=.",
    |request| as_own(|| log(request))
);

/// Who has not asked for so long has gone.
const LEASE: Duration = Duration::from_secs(3);

/// Somebody outside who follows a log.
struct Follower {
    number: u64,
    observer: Observer,
    until: Instant,
}

impl Follower {
    fn stay(&mut self) {
        self.until = Instant::now() + LEASE;
    }
}

static FOLLOWERS: Mutex<Followers> = Mutex::new(Followers { next: 1, list: Vec::new() });

struct Followers {
    next: u64,
    list: Vec<Follower>,
}

fn followers() -> MutexGuard<'static, Followers> {
    // Nothing of ours panics under the lock.
    FOLLOWERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn log(request: &Request) -> Answer {
    match request.get("do") {
        Some("begin") => begin(request),
        Some("take") => take(request),
        Some("stay") => {
            find(&mut followers(), request).map(|(list, at)| list[at].stay())?;
            Ok(Vec::new())
        }
        Some("end") => {
            drop(find(&mut followers(), request).map(|(list, at)| list.remove(at))?);
            Ok(Vec::new())
        }
        _ => Err("say do=begin, do=take, do=stay or do=end".to_owned()),
    }
}

fn begin(request: &Request) -> Answer {
    let mut observer = Observer::sampling(sampling(request)?).map_err(|error| error.to_string())?;
    if let Some(length) = request.get("length") {
        let length = length.parse().map_err(|_| format!("length={length} is no number"))?;
        observer.set_max_log_length(length);
    }
    let mut followers = followers();
    let number = followers.next;
    followers.next += 1;
    let is_first = followers.list.is_empty();
    followers.list.push(Follower { number, observer, until: Instant::now() + LEASE });
    drop(followers);
    if is_first {
        let watch = thread::Builder::new().name("dmd-log".into()).stack_size(128 * 1024);
        if let Err(error) = watch.spawn(|| as_own(watch_leases)) {
            followers_end(number);
            return Err(format!("no thread could be started: {error}"));
        }
    }
    Ok(vec![part(
        "log",
        &json!({ "number": number, "leaseMs": u64::try_from(LEASE.as_millis()).unwrap_or(u64::MAX) }),
    )])
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

/// The follower that the request names, and its place.
fn find<'f>(
    followers: &'f mut Followers,
    request: &Request,
) -> Result<(&'f mut Vec<Follower>, usize), String> {
    let number: Option<u64> = request.get("number").and_then(|number| number.parse().ok());
    let at = followers.list.iter().position(|follower| Some(follower.number) == number);
    let at = at.ok_or("nobody follows under this number; begin anew")?;
    Ok((&mut followers.list, at))
}

fn take(request: &Request) -> Answer {
    let mut followers = followers();
    let (list, at) = find(&mut followers, request)?;
    let follower = &mut list[at];
    follower.stay();
    let log = follower.observer.drain_allocations_log().map_err(|error| error.to_string())?;
    drop(followers);
    let (now, instant) = (SystemTime::now(), Instant::now());
    let since_1970 = |entry: &Allocation| {
        let ago =
            entry.time().map_or(Duration::ZERO, |time| instant.saturating_duration_since(time));
        let time = now.checked_sub(ago)?.duration_since(UNIX_EPOCH).ok()?;
        u64::try_from(time.as_micros()).ok()
    };
    let times: Vec<_> = log.entries.iter().map(since_1970).collect();
    let said = json!({ "overflowed": log.overflowed, "lost": log.lost, "timesUs": times });
    let mut dump = Vec::new();
    write_log(&log.entries, &mut dump).map_err(|error| error.to_string())?;
    Ok(vec![part("log", &said), Part { name: "dump".into(), bytes: dump }])
}

fn part(name: &str, value: &Value) -> Part {
    Part { name: name.into(), bytes: value.to_string().into_bytes() }
}

fn followers_end(number: u64) {
    let mut followers = followers();
    followers.list.retain(|follower| follower.number != number);
}

/// Runs while somebody follows.
fn watch_leases() {
    loop {
        let mut followers = followers();
        let now = Instant::now();
        followers.list.retain(|follower| follower.until > now);
        let Some(next) = followers.list.iter().map(|follower| follower.until).min() else { return };
        drop(followers);
        thread::sleep(next.saturating_duration_since(now));
    }
}
