//! Receives the messages of a run's processes, and signals.

use std::io::{BufRead, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::Sender;
use std::thread;

/// An event of the run.
#[derive(Debug)]
pub(crate) enum Event {
    /// A process has connected. Requests are written to this stream.
    Hello(UnixStream),
    /// The process has saved a snapshot under this name, for this reason.
    Saved(u32, String, String),
    /// The process could not save a snapshot.
    Failed(u32, String),
    /// The largest number of allocated bytes that the process saw.
    Highest(u32, u64),
    /// `about-memory` received a signal. True if the program's process received it too.
    Signal(i32, bool),
    /// The program has ended.
    Ended(std::io::Result<std::process::ExitStatus>),
}

/// Accepts connections until the program ends.
pub(crate) fn accept(listener: UnixListener, events: Sender<Event>) {
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let events = events.clone();
            thread::spawn(move || receive(&stream, &events));
        }
    });
}

/// Receives messages of one process until it ends. Ignores unknown ones: they may be of a later
/// version.
fn receive(stream: &UnixStream, events: &Sender<Event>) {
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

/// Receives Ctrl-C and SIGTERM instead of ending, so that the program's snapshot is still shown.
pub(crate) fn signals(events: Sender<Event>) -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::SignalsInfo;
    use signal_hook::iterator::exfiltrator::WithOrigin;
    let mut signals = SignalsInfo::<WithOrigin>::new([SIGINT, SIGTERM])?;
    thread::spawn(move || {
        for origin in signals.forever() {
            // A terminal sends to all its processes, `kill` to one alone.
            let program_too = origin.process.is_none();
            if events.send(Event::Signal(origin.signal, program_too)).is_err() {
                return;
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn each_message_of_a_process_is_an_event() {
        let (mut process, stream) = UnixStream::pair().expect("a pair");
        let messages = "highest 5\nhello 71\nsaved heap-71.json near the peak\nsaved alone\n\
                        later news\nfailed no space left\nhighest 1234\nhello nobody\n";
        process.write_all(messages.as_bytes()).expect("a socket");
        drop(process);
        let (sender, events) = mpsc::channel();
        receive(&stream, &sender);
        drop(sender);
        let name = |event| match event {
            Event::Hello(_) => "hello".to_owned(),
            other => format!("{other:?}"),
        };
        let expected = [
            // Its number is not known yet.
            "Highest(0, 5)",
            "hello",
            r#"Saved(71, "heap-71.json", "near the peak")"#,
            r#"Saved(71, "alone", "")"#,
            r#"Failed(71, "no space left")"#,
            "Highest(71, 1234)",
        ];
        assert_eq!(events.iter().map(name).collect::<Vec<_>>(), expected);
    }
}
