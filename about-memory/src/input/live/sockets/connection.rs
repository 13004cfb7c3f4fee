//! Sends requests to a running program, with a time limit and a check of the peer.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::time::Duration;

use memreport::serve::protocol::{self, Status};
use memreport::serve::{Part, Peer, Request, peer, user};
use serde::de::DeserializeOwned;

use super::error::LiveError;
use super::find::Program;
use super::socket::{Deadline, Stream};

/// The most bytes of an answer, over all its parts.
const MAX_ANSWER: usize = 4 << 30;

/// The most bytes of a status, requested from all programs.
const MAX_STATUS: usize = 1 << 20;

/// The most bytes of a report, gzipped.
const MAX_REPORT: usize = 256 << 20;

/// The longest header of an answer.
const MAX_HEADER: u64 = 1 << 20;

/// A running program that takes requests. Each request opens a connection of its own.
#[derive(Clone, Debug)]
pub struct Connection {
    program: Program,
    timeout: Duration,
    /// True if reports leave out private words.
    anonymizes: bool,
}

impl Connection {
    /// Makes a connection with this time limit for each answer.
    #[must_use]
    pub fn new(program: Program, timeout: Duration) -> Self {
        Connection { program, timeout, anonymizes: false }
    }

    /// Sets whether reports leave out the words that reporters declare private.
    #[must_use]
    pub fn anonymize(self, anonymizes: bool) -> Self {
        Connection { anonymizes, ..self }
    }

    /// Returns the process's pid.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.program.pid
    }

    /// Sends a request, and waits for the whole answer.
    ///
    /// # Errors
    /// Another process listens there, nothing arrives in time, or the program refuses.
    pub fn ask(&self, request: &Request) -> Result<Vec<Part>, LiveError> {
        self.ask_within(request, MAX_ANSWER)
    }

    fn ask_within(&self, request: &Request, most: usize) -> Result<Vec<Part>, LiveError> {
        let pid = self.program.pid;
        let io = |error| LiveError::Io(pid, error);
        let mut stream = self.connect(Deadline::after(self.timeout))?;
        match stream.write_all(request.line().as_bytes()) {
            // The program may have answered already that it is busy.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            written => written.map_err(io)?,
        }
        let mut answer = BufReader::new(stream);
        let mut line = Vec::new();
        answer.by_ref().take(MAX_HEADER).read_until(b'\n', &mut line).map_err(io)?;
        if line.is_empty() {
            return Err(LiveError::Io(pid, io::ErrorKind::UnexpectedEof.into()));
        }
        let header = protocol::parse_header(&line).map_err(|what| LiveError::Garbled(pid, what))?;
        let announced = header.map_err(|message| LiveError::Refused(pid, message))?;
        let total = announced.iter().fold(0, |sum: usize, (_, length)| sum.saturating_add(*length));
        if total > most {
            return Err(LiveError::Garbled(pid, format!("{total} bytes announced")));
        }
        let mut parts = Vec::new();
        for (name, length) in announced {
            let mut bytes = Vec::new();
            answer.by_ref().take(length as u64).read_to_end(&mut bytes).map_err(io)?;
            if bytes.len() < length {
                return Err(LiveError::Io(pid, io::ErrorKind::UnexpectedEof.into()));
            }
            parts.push(Part { name, bytes });
        }
        Ok(parts)
    }

    /// Parses the first part of an answer, which is JSON.
    pub(crate) fn parse<T: DeserializeOwned>(&self, parts: &[Part]) -> Result<T, LiveError> {
        let bytes = parts.first().map_or(&[][..], |part| &part.bytes);
        serde_json::from_slice(bytes)
            .map_err(|error| LiveError::Garbled(self.program.pid, error.to_string()))
    }

    /// Requests the status of the program.
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask).
    pub fn status(&self) -> Result<Status, LiveError> {
        self.parse(&self.ask_within(&Request::new("status"), MAX_STATUS)?)
    }

    /// Requests the name of the program.
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask).
    pub fn name(&self) -> Result<String, LiveError> {
        Ok(self.status()?.name)
    }

    /// Requests the report files that the program saved itself, oldest first.
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask).
    pub fn history(&self) -> Result<Vec<Vec<u8>>, LiveError> {
        let parts = self.ask(&Request::new("history"))?;
        Ok(parts.into_iter().map(|part| part.bytes).collect())
    }

    /// Has the program release caches and unused heap.
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask).
    pub fn minimize(&self) -> Result<(), LiveError> {
        self.ask(&Request::new("minimize")).map(drop)
    }

    /// Has the program begin to track its blocks, or stop.
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask).
    pub fn track(&self, is_on: bool) -> Result<(), LiveError> {
        self.ask(&Request::new(if is_on { "track" } else { "untrack" })).map(drop)
    }

    /// Requests a memory report (gzipped), and DMD's dump of the same moment if `with_dump` is set.
    ///
    /// # Errors
    /// Asks as [`ask`](Self::ask) does; with a dump, also if DMD does not track.
    pub fn report(&self, with_dump: bool) -> Result<Report, LiveError> {
        let seconds = format!("{}", self.timeout.as_secs_f64() / 2.0);
        // Older programs read the old name only.
        let mut request =
            Request::new("report").with("timeout", seconds.clone()).with("patience", seconds);
        if with_dump {
            request = request.with("dump", "yes");
        }
        if self.anonymizes {
            request = request.with("anonymize", "yes");
        }
        let parts = self.ask_within(&request, if with_dump { MAX_ANSWER } else { MAX_REPORT })?;
        let find =
            |name: &str| parts.iter().find(|part| part.name == name).map(|part| part.bytes.clone());
        let report = find("report").ok_or_else(|| {
            LiveError::Garbled(self.program.pid, "there is no report in it".into())
        })?;
        Ok(Report { report, dump: find("dump") })
    }

    fn connect(&self, deadline: Deadline) -> Result<Stream, LiveError> {
        let program = &self.program;
        let stream = Stream::connect(&program.socket, deadline)
            .map_err(|error| not_connected(program, error))?;
        let peer = peer(stream.inner()).map_err(|error| LiveError::Io(program.pid, error))?;
        check_peer(program, peer, user())?;
        Ok(stream)
    }
}

/// Returns the error of a failed attempt to connect.
fn not_connected(Program { pid, socket }: &Program, error: io::Error) -> LiveError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => LiveError::NotAllowed(*pid),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
            LiveError::NotServing(*pid, socket.clone())
        }
        _ => LiveError::Io(*pid, error),
    }
}

/// Fails unless the peer is the program, and its user is this one or this one is root.
fn check_peer(program: &Program, peer: Peer, user: u32) -> Result<(), LiveError> {
    let Program { pid, ref socket } = *program;
    // The kernel gives the peer's pid: the name of a socket can be stale, and a pid can be reused.
    if peer.pid != pid {
        return Err(LiveError::WrongPeer { pid, peer: peer.pid, socket: socket.clone() });
    }
    if peer.uid != user && user != 0 {
        return Err(LiveError::NotAllowed(pid));
    }
    Ok(())
}

/// The report of a program at one moment.
#[derive(Clone, Debug)]
pub struct Report {
    /// The memory report's file.
    pub report: Vec<u8>,
    /// DMD's dump.
    pub dump: Option<Vec<u8>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Program {
        Program { pid: 7, socket: "/run/memreport-7.sock".into() }
    }

    #[test]
    fn a_program_that_is_not_reached_is_named_with_the_reason() {
        let not_serving = "process 7 is not reachable: nothing listens at /run/memreport-7.sock; \
                           call `memreport::serve()` in the program, or load the tracker into it: \
                           about-memory attach 7";
        let not_allowed =
            "process 7 is another user's; only its own user and root may connect to it";
        let table = [
            (io::ErrorKind::NotFound, not_serving),
            (io::ErrorKind::ConnectionRefused, not_serving),
            (io::ErrorKind::PermissionDenied, not_allowed),
            (io::ErrorKind::WouldBlock, "process 7 did not answer in time; is it stopped?"),
            (io::ErrorKind::ConnectionReset, "process 7 did not answer"),
        ];
        for (kind, expected) in table {
            assert_eq!(not_connected(&program(), kind.into()).to_string(), expected, "{kind}");
        }
    }

    #[test]
    fn a_peer_is_the_program_of_its_own_user_or_root_asks() {
        let wrong_peer = Some(
            "process 8 listens at /run/memreport-7.sock, the socket of process 7; it got no request",
        );
        let not_allowed =
            Some("process 7 is another user's; only its own user and root may connect to it");
        let table = [
            // the peer's process and user, this user, the error
            (7, 1000, 1000, None),
            (7, 1000, 0, None),
            (7, 0, 0, None),
            (7, 1001, 1000, not_allowed),
            (7, 0, 1000, not_allowed),
            (8, 1000, 1000, wrong_peer),
            (8, 1000, 0, wrong_peer),
        ];
        for (pid, uid, user, expected) in table {
            let error = check_peer(&program(), Peer { pid, uid }, user).err();
            let error = error.map(|error| error.to_string());
            assert_eq!(error.as_deref(), expected, "process {pid} of {uid}, by {user}");
        }
    }
}
