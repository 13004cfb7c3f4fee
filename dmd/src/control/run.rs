//! The tracked side of `about-memory run`: takes snapshots on request, at signals, near the peak,
//! and at exit.
//!
//! `$MEMREPORT_RUN` names a folder that contains a socket. The program connects before `main`, and
//! a thread waits for requests. While it waits, it owns nothing on the program's heap.
//!
//! | from the program | |
//! |---|---|
//! | `hello PID` | sent once |
//! | `saved NAME MOMENT` | a snapshot and its dump are in the folder, under this name |
//! | `failed MESSAGE` | a snapshot could not be saved |
//! | `highest BYTES` | sent at exit: the high-water mark of the heap while the peak was watched |
//!
//! | to the program | |
//! |---|---|
//! | `snapshot MOMENT` | take a snapshot |
//! | `peak` | from now on, take one whenever the heap has grown by a twentieth since the last |

mod line_buffer;

use std::ffi::c_int;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64};
use std::{mem, process};

use memreport::__private::{as_own, copy_private, out_of_the_way};
use memreport::{Collector, heap_counters};

use self::line_buffer::LineBuffer;
use super::sudden_exit;
use crate::collect::Dump;
use crate::dump::{beside, on_saved};
use crate::mem::{signals, sys};

/// The environment variable with the folder of the socket.
pub const VARIABLE: &str = "MEMREPORT_RUN";

/// The name of the socket in the folder.
pub const SOCKET: &str = "socket";

/// The connection's descriptor or -1, and the process that opened it: a forked child must not use
/// it.
static CONNECTION: AtomicI32 = AtomicI32::new(-1);
static CONNECTED_BY: AtomicU32 = AtomicU32::new(0);

/// The number of snapshots so far.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The high-water mark of the heap while the peak is watched, in bytes.
static HIGHEST: AtomicU64 = AtomicU64::new(0);

/// The interval between samples of the heap size while the peak is watched, in milliseconds.
const PEAK_INTERVAL: c_int = 5;

/// Connects to `about-memory run`, if it started the program.
///
/// With `catches_signals`, a snapshot is taken at SIGINT and SIGTERM if they would end the program.
pub(crate) fn connect(catches_signals: bool) {
    let Some(folder) = folder() else { return };
    // The variable may be inherited from an earlier run that has ended.
    let Ok(stream) = UnixStream::connect(folder.join(SOCKET)) else { return };
    CONNECTION.store(out_of_the_way(stream.into()).into_raw_fd(), Relaxed);
    CONNECTED_BY.store(process::id(), Relaxed);
    send(format_args!("hello {}", process::id()));
    on_saved(saved);
    signals::at_exit(at_exit);
    sudden_exit::start();
    let caught: &[c_int] = if catches_signals { &[libc::SIGINT, libc::SIGTERM] } else { &[] };
    if signals::redirect_to_pipe(caught).and_then(|()| signals::spawn(wait_for_requests)).is_err() {
        send(format_args!(
            "failed no thread could be started; only the state at exit will be seen"
        ));
    }
}

/// Copies a snapshot that the program has saved into the folder.
fn saved(report: &Path, moment: &str) {
    let Some(folder) = folder().filter(|_| is_connected()) else { return };
    if report.starts_with(&folder) {
        return;
    }
    let ending = if report.extension().is_some_and(|ending| ending == "gz") { ".gz" } else { "" };
    let name = next_name() + ending;
    let copy = folder.join(&name);
    let copied =
        copy_private(report, &copy).and_then(|()| copy_private(&beside(report), &beside(&copy)));
    report_saved(copied.map(|()| name), moment);
}

fn folder() -> Option<PathBuf> {
    sys::variable(VARIABLE).map(PathBuf::from)
}

fn is_connected() -> bool {
    CONNECTION.load(Relaxed) >= 0 && CONNECTED_BY.load(Relaxed) == process::id()
}

/// Saves a snapshot in the folder.
fn take_snapshot(moment: &str) {
    take_snapshot_named(moment, |_| moment.to_owned());
}

/// Saves a snapshot in the folder, and names its moment by the allocated bytes that it shows, which
/// it returns.
fn take_snapshot_named(moment: &str, name_of: impl FnOnce(Option<u64>) -> String) -> Option<u64> {
    // These live during the snapshot. Reporters run as usual: what they keep is the program's.
    let (folder, name, moment) = as_own(|| {
        let folder = folder().filter(|_| is_connected())?;
        Some((folder, next_name(), moment.to_owned()))
    })?;
    let snapshot = Collector::default().moment(moment).snapshot();
    // As the report's `heap-allocated`.
    let sums = Dump::of(&snapshot).map(Dump::summary);
    let bytes = sums.map(|sums| (sums.heap_allocated + sums.reported_transient) as u64);
    let result = snapshot.save(folder.join(&name));
    report_saved(result.map(|()| name), &name_of(bytes));
    bytes
}

/// Returns a file name. Names sort in the order of the snapshots.
fn next_name() -> String {
    format!("{}-{:05}.json", process::id(), COUNT.fetch_add(1, Relaxed))
}

/// Reports to `about-memory run` that a snapshot was saved, or why not.
fn report_saved(saved: io::Result<String>, moment: &str) {
    match saved {
        Ok(name) => send(format_args!("saved {name} {moment}")),
        Err(error) => send(format_args!("failed {error}")),
    }
}

/// Sends a line. Ignores errors: the program continues without a connection.
fn send(line: std::fmt::Arguments<'_>) {
    if let Some(mut stream) = BorrowedConnection::get() {
        // One write per line, so that lines of two threads do not mix.
        let _ = stream.0.write_all(format!("{line}\n").as_bytes());
    }
}

/// A borrow of the connection, which is never closed while the program runs.
struct BorrowedConnection(mem::ManuallyDrop<UnixStream>);

impl BorrowedConnection {
    fn get() -> Option<Self> {
        if !is_connected() {
            return None;
        }
        #[expect(unsafe_code, reason = "borrows a descriptor")]
        // SAFETY: opened by `connect`, never closed; the stream is not dropped.
        let stream = unsafe { UnixStream::from_raw_fd(CONNECTION.load(Relaxed)) };
        let stream = mem::ManuallyDrop::new(stream);
        // The program may have closed it, and opened a file of its own under this number.
        let address = stream.peer_addr().ok()?;
        let is_ours = address.as_pathname() == Some(&folder()?.join(SOCKET));
        is_ours.then_some(BorrowedConnection(stream))
    }
}

extern "C" fn at_exit() {
    static IS_DONE: AtomicBool = AtomicBool::new(false);
    if !is_connected() || IS_DONE.swap(true, Relaxed) {
        return;
    }
    take_snapshot(AT_EXIT);
    let highest = HIGHEST.load(Relaxed);
    if highest > 0 {
        send(format_args!("highest {highest}"));
    }
}

/// The beginning of the moment of a snapshot near the peak.
pub const NEAR_PEAK: &str = "near the peak";

/// The moment of the snapshot at exit, after locals were dropped.
pub const AT_EXIT: &str = "at exit";

/// The main function of the thread that waits for requests.
extern "C" fn wait_for_requests() {
    let Some(mut connection) = BorrowedConnection::get() else { return };
    let mut line = LineBuffer::default();
    let watching = AtomicBool::new(false);
    loop {
        let timeout = if watching.load(Relaxed) { PEAK_INTERVAL } else { -1 };
        match signals::wait(connection.0.as_raw_fd(), timeout) {
            signals::Event::Readable => {
                let requests = line.read(&mut *connection.0, |request| handle(request, &watching));
                if requests.is_err() {
                    return;
                }
            }
            signals::Event::Signal(signal) => {
                take_snapshot(&as_own(|| format!("on {}", signal_name(signal))));
                signals::end_by(signal);
            }
            signals::Event::TimedOut => check_peak(),
        }
    }
}

fn handle(request: &str, watching: &AtomicBool) {
    match request.split_once(' ') {
        Some(("snapshot", moment)) => take_snapshot(moment),
        None if request == "peak" => watching.store(true, Relaxed),
        _ => send(format_args!("failed unknown request '{request}'")),
    }
}

/// Returns whether the heap has grown by more than a twentieth and 64 KiB since the last snapshot.
fn is_higher(live: u64, last: u64) -> bool {
    live > last + last / 20 + 64 * 1024
}

/// Takes a snapshot if the heap is higher than at the last one. Its moment has the size that it
/// shows: the heap may have shrunk since this thread has looked.
fn check_peak() {
    static TAKEN_AT: AtomicU64 = AtomicU64::new(0);
    let live = heap_counters().map_or(0, |counters| counters.live_bytes());
    HIGHEST.fetch_max(live, Relaxed);
    if is_higher(live, TAKEN_AT.load(Relaxed)) {
        let taken = take_snapshot_named(NEAR_PEAK, |bytes| match bytes {
            Some(bytes) => format!("{NEAR_PEAK}, with {bytes} bytes allocated"),
            None => NEAR_PEAK.to_owned(),
        });
        TAKEN_AT.store(taken.unwrap_or(live), Relaxed);
    }
}

fn signal_name(signal: c_int) -> &'static str {
    match signal {
        libc::SIGINT => "SIGINT",
        libc::SIGTERM => "SIGTERM",
        _ => "a signal",
    }
}

/// The name of the section that marks a program with DMD, in ELF files.
pub const MARKER_SECTION: &str = ".memreport.dmd";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_higher_by_a_twentieth_and_64_kib() {
        for (last, highest) in
            [(0, 65_536), (19, 65_555), (100_000, 170_536), (1 << 30, 1_127_494_451)]
        {
            assert!(!is_higher(highest, last), "{last}");
            assert!(is_higher(highest + 1, last), "{last}");
        }
    }
}
