//! The ear of a run: what its processes say, and what signals come.

use std::io::{BufRead, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::Sender;
use std::thread;

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// A process has connected; requests go to this stream.
    Hello(UnixStream),
    /// It has left a snapshot under this name, of this moment.
    Saved(u32, String, String),
    /// It could not.
    Failed(u32, String),
    /// The most that it saw allocated.
    Highest(u32, u64),
    /// A signal came to `about-memory`; whether the program's process got it too.
    Signal(i32, bool),
    /// The program has ended.
    Ended(std::io::Result<std::process::ExitStatus>),
}

/// Hears connections until the program ends.
pub(crate) fn accept(listener: UnixListener, events: Sender<Event>) {
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let events = events.clone();
            thread::spawn(move || hear(&stream, &events));
        }
    });
}

/// Hears one process until it ends. What is not understood is passed over: it may be a later version's.
fn hear(stream: &UnixStream, events: &Sender<Event>) {
    let mut pid = 0;
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let event = match word {
            "hello" => match (rest.parse(), stream.try_clone()) {
                (Ok(number), Ok(stream)) => {
                    pid = number;
                    Event::Hello(stream)
                }
                _ => continue,
            },
            "saved" => {
                let (name, moment) = rest.split_once(' ').unwrap_or((rest, ""));
                Event::Saved(pid, name.to_owned(), moment.to_owned())
            }
            "failed" => Event::Failed(pid, rest.to_owned()),
            "highest" => Event::Highest(pid, rest.parse().unwrap_or(0)),
            _ => continue,
        };
        if events.send(event).is_err() {
            return;
        }
    }
}

/// Hears Ctrl-C and SIGTERM instead of dying of them: the program's snapshot is to be shown.
pub(crate) fn signals(events: Sender<Event>) -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::SignalsInfo;
    use signal_hook::iterator::exfiltrator::WithOrigin;
    let mut signals = SignalsInfo::<WithOrigin>::new([SIGINT, SIGTERM])?;
    thread::spawn(move || {
        for origin in signals.forever() {
            // A terminal sends to all its processes; a person with `kill`, only to the one that is named.
            let program_too = origin.process.is_none();
            if events.send(Event::Signal(origin.signal, program_too)).is_err() {
                return;
            }
        }
    });
    Ok(())
}
