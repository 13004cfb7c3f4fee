//! Under `about-memory run`: snapshots when it asks for one, at a signal, near the peak, and at the end.
//!
//! `$MEMREPORT_RUN` names a folder with a socket in it. The program connects before `main`; a thread of its own then waits
//! for requests. Idle, it owns nothing on the program's heap.
//!
//! | from the program | |
//! |---|---|
//! | `hello PID` | once |
//! | `saved NAME MOMENT` | a snapshot and its dump are in the folder, under that name |
//! | `failed MESSAGE` | a snapshot could not be saved |
//! | `highest BYTES` | at the end: the most that was seen allocated while the peak was watched |
//!
//! | to the program | |
//! |---|---|
//! | `snapshot MOMENT` | take one |
//! | `peak` | from now on, take one whenever the heap has grown past the last by a twentieth |

use std::ffi::c_int;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64};
use std::{fs, mem, process};

use memreport::{Collector, heap_counters};

use crate::dump::{beside, on_saved};
use crate::mem::signals;

/// The environment variable that names the folder.
pub const VARIABLE: &str = "MEMREPORT_RUN";

/// The socket's name in the folder.
pub const SOCKET: &str = "socket";

/// The connection's descriptor, or -1: the process that made it, since a forked child must not speak on it.
static CONNECTION: AtomicI32 = AtomicI32::new(-1);
static CONNECTED_BY: AtomicU32 = AtomicU32::new(0);

/// Snapshots saved so far.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The most that was seen allocated while the peak was watched, in bytes.
static HIGHEST: AtomicU64 = AtomicU64::new(0);

/// How often the heap is looked at while the peak is watched, in milliseconds.
const PEAK_PERIOD: c_int = 5;

/// Meets `about-memory run`, if the program was started by it.
pub(crate) fn connect() {
    let Some(folder) = folder() else { return };
    // Nobody there: the variable is a leftover, and the program runs as ever.
    let Ok(stream) = UnixStream::connect(folder.join(SOCKET)) else { return };
    CONNECTION.store(stream.into_raw_fd(), Relaxed);
    CONNECTED_BY.store(process::id(), Relaxed);
    send(format_args!("hello {}", process::id()));
    on_saved(saved);
    signals::at_exit(at_exit);
    if signals::redirect_to_pipe(&[libc::SIGINT, libc::SIGTERM])
        .and_then(|()| signals::spawn(wait_for_requests))
        .is_err()
    {
        send(format_args!(
            "failed no thread could be started; only the state at exit will be seen"
        ));
    }
}

/// The program has saved a snapshot: the folder gets a copy.
fn saved(report: &Path, moment: &str) {
    let Some(folder) = folder().filter(|_| is_connected()) else { return };
    if report.starts_with(&folder) {
        return;
    }
    let ending = if report.extension().is_some_and(|ending| ending == "gz") { ".gz" } else { "" };
    let name = next_name() + ending;
    let copy = folder.join(&name);
    let copied = fs::copy(report, &copy).and_then(|_| fs::copy(beside(report), beside(&copy)));
    tell(copied.map(|_| name), moment);
}

fn folder() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).map(PathBuf::from)
}

fn is_connected() -> bool {
    CONNECTION.load(Relaxed) >= 0 && CONNECTED_BY.load(Relaxed) == process::id()
}

/// Takes a snapshot into the folder.
fn take(moment: &str) {
    let Some(folder) = folder().filter(|_| is_connected()) else { return };
    let name = next_name();
    let result = Collector::default().moment(moment.to_owned()).snapshot().save(folder.join(&name));
    tell(result.map(|()| name), moment);
}

/// Names that sort in the order in which the snapshots were taken.
fn next_name() -> String {
    format!("{}-{:05}.json", process::id(), COUNT.fetch_add(1, Relaxed))
}

fn tell(saved: io::Result<String>, moment: &str) {
    match saved {
        Ok(name) => send(format_args!("saved {name} {moment}")),
        Err(error) => send(format_args!("failed {error}")),
    }
}

/// Writes a line. If nobody listens any more, the program goes on alone.
fn send(line: std::fmt::Arguments<'_>) {
    if let Some(mut stream) = Borrowed::connection() {
        // One write for a line, so that lines of two threads do not mix.
        let _ = stream.0.write_all(format!("{line}\n").as_bytes());
    }
}

/// The connection, which is never closed while the program runs.
struct Borrowed(mem::ManuallyDrop<UnixStream>);

impl Borrowed {
    fn connection() -> Option<Self> {
        is_connected().then(|| {
            #[expect(unsafe_code, reason = "borrows a descriptor")]
            // SAFETY: opened by `connect`, never closed; the stream is not dropped.
            let stream = unsafe { UnixStream::from_raw_fd(CONNECTION.load(Relaxed)) };
            Borrowed(mem::ManuallyDrop::new(stream))
        })
    }
}

extern "C" fn at_exit() {
    if !is_connected() {
        return;
    }
    take(AT_EXIT);
    let highest = HIGHEST.load(Relaxed);
    if highest > 0 {
        send(format_args!("highest {highest}"));
    }
}

/// The moment at which locals are gone.
pub const AT_EXIT: &str = "at exit";

/// The thread that waits.
extern "C" fn wait_for_requests() {
    let Some(mut connection) = Borrowed::connection() else { return };
    let mut line = Line::default();
    let watching = AtomicBool::new(false);
    loop {
        let patience = if watching.load(Relaxed) { PEAK_PERIOD } else { -1 };
        match signals::wait(connection.0.as_raw_fd(), patience) {
            signals::Event::Readable => {
                let requests = line.read(&mut *connection.0, |request| answer(request, &watching));
                if requests.is_err() {
                    return;
                }
            }
            signals::Event::Signal(signal) => {
                take(&format!("on {}", signal_name(signal)));
                signals::end_by(signal);
            }
            signals::Event::TimedOut => look_for_peak(),
        }
    }
}

fn answer(request: &str, watching: &AtomicBool) {
    match request.split_once(' ') {
        Some(("snapshot", moment)) => take(moment),
        None if request == "peak" => watching.store(true, Relaxed),
        _ => send(format_args!("failed nobody knows the request '{request}'")),
    }
}

fn look_for_peak() {
    static TAKEN_AT: AtomicU64 = AtomicU64::new(0);
    let live = heap_counters().map_or(0, |counters| counters.live_bytes());
    HIGHEST.fetch_max(live, Relaxed);
    let last = TAKEN_AT.load(Relaxed);
    if live > last + last / 20 + 64 * 1024 {
        TAKEN_AT.store(live, Relaxed);
        take(&format!("near the peak, with {live} bytes allocated"));
    }
}

fn signal_name(signal: c_int) -> &'static str {
    match signal {
        libc::SIGINT => "SIGINT",
        libc::SIGTERM => "SIGTERM",
        _ => "a signal",
    }
}

/// Bytes that came in, until they make a line. A line too long is cut.
struct Line {
    bytes: [u8; 256],
    length: usize,
}

impl Default for Line {
    fn default() -> Self {
        Line { bytes: [0; 256], length: 0 }
    }
}

impl Line {
    /// Reads what there is, and hands every whole line to `take`. An error is the end of the connection.
    fn read(&mut self, from: &mut impl Read, mut take: impl FnMut(&str)) -> io::Result<()> {
        let mut fresh = [0; 256];
        let count = from.read(&mut fresh)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for byte in &fresh[..count] {
            if *byte == b'\n' {
                take(std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default());
                self.length = 0;
            } else if let Some(place) = self.bytes.get_mut(self.length) {
                *place = *byte;
                self.length += 1;
            }
        }
        Ok(())
    }
}

/// Whether this file was built with DMD: looked for by `about-memory run` before it starts a program.
#[used]
#[expect(unsafe_code, reason = "a section of its own, to be found in the file")]
// SAFETY: plain bytes that nobody else defines.
#[unsafe(link_section = ".memreport.dmd")]
static MARK: [u8; 4] = *b"DMD1";

/// The section that a program with DMD has.
pub const MARK_SECTION: &str = ".memreport.dmd";

/// Keeps the mark in the program: what nobody refers to, the linker drops.
pub(crate) fn keep_mark() {
    std::hint::black_box(&MARK);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        let mut line = Line::default();
        let mut seen = Vec::new();
        for piece in ["snap", "shot now\npe", "ak\n", "\n"] {
            line.read(&mut piece.as_bytes(), |request| seen.push(request.to_owned())).unwrap();
        }
        assert_eq!(seen, ["snapshot now", "peak", ""]);
        assert!(line.read(&mut io::empty(), |_| ()).is_err());
        let long = "x".repeat(1000);
        line.read(&mut long.as_bytes(), |_| panic!("no line yet")).unwrap();
    }
}
