//! One question to one program, with an eye on who answers and on the clock.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use memreport::serve::protocol::{self, Status};
use memreport::serve::{Part, Request, peer, user};

use super::error::LiveError;
use super::find::Program;

/// An answer larger than this is not believed.
const LARGEST: usize = 4 << 30;

/// The longest line before an answer.
const LONGEST_HEADER: u64 = 1 << 20;

/// A way to ask a program. Each question is a connection of its own: a program that ends in between is asked no more.
#[derive(Clone, Debug)]
pub struct Connection {
    program: Program,
    patience: Duration,
}

impl Connection {
    /// To this program, which gets so much time for each piece of an answer.
    #[must_use]
    pub fn new(program: Program, patience: Duration) -> Self {
        Connection { program, patience }
    }

    /// The process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.program.pid
    }

    /// Asks, and waits for the whole answer.
    ///
    /// # Errors
    /// When somebody else listens there, nothing comes in time, or the program refuses.
    pub fn ask(&self, request: &Request) -> Result<Vec<Part>, LiveError> {
        let pid = self.program.pid;
        let io = |error| LiveError::Io(pid, error);
        let mut stream = self.connect()?;
        match stream.write_all(request.line().as_bytes()) {
            // It may have answered already, that it has no time.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            written => written.map_err(io)?,
        }
        let mut answer = BufReader::new(stream);
        let mut line = Vec::new();
        answer.by_ref().take(LONGEST_HEADER).read_until(b'\n', &mut line).map_err(io)?;
        if line.is_empty() {
            return Err(LiveError::Io(pid, io::ErrorKind::UnexpectedEof.into()));
        }
        let header = protocol::parse_header(&line).map_err(|what| LiveError::Garbled(pid, what))?;
        let announced = header.map_err(|message| LiveError::Refused(pid, message))?;
        let mut parts = Vec::new();
        for (name, length) in announced {
            if length > LARGEST {
                return Err(LiveError::Garbled(pid, format!("{length} bytes announced")));
            }
            let mut bytes = Vec::new();
            answer.by_ref().take(length as u64).read_to_end(&mut bytes).map_err(io)?;
            if bytes.len() < length {
                return Err(LiveError::Io(pid, io::ErrorKind::UnexpectedEof.into()));
            }
            parts.push(Part { name, bytes });
        }
        Ok(parts)
    }

    /// What it says of itself.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn status(&self) -> Result<Status, LiveError> {
        let parts = self.ask(&Request::new("status"))?;
        let garbled = |what: String| LiveError::Garbled(self.program.pid, what);
        let part = parts.first().ok_or_else(|| garbled("it is empty".to_owned()))?;
        serde_json::from_slice(&part.bytes).map_err(|error| garbled(error.to_string()))
    }

    /// A memory report's file, gzipped; and DMD's dump of the same moment, if it is wanted.
    ///
    /// # Errors
    /// As [`ask`](Self::ask); and with a dump, where DMD does not track.
    pub fn report(&self, with_dump: bool) -> Result<Report, LiveError> {
        let mut request = Request::new("report")
            .with("patience", format!("{}", self.patience.as_secs_f64() / 2.0));
        if with_dump {
            request = request.with("dump", "yes");
        }
        let parts = self.ask(&request)?;
        let find =
            |name: &str| parts.iter().find(|part| part.name == name).map(|part| part.bytes.clone());
        let report = find("report").ok_or_else(|| {
            LiveError::Garbled(self.program.pid, "there is no report in it".into())
        })?;
        Ok(Report { report, dump: find("dump") })
    }

    fn connect(&self) -> Result<UnixStream, LiveError> {
        let Program { pid, socket } = &self.program;
        let stream = UnixStream::connect(socket).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => LiveError::NotAllowed(*pid),
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
                LiveError::NotServing(*pid, socket.clone())
            }
            _ => LiveError::Io(*pid, error),
        })?;
        let peer = peer(&stream).map_err(|error| LiveError::Io(*pid, error))?;
        // The kernel's word: a stale name, or a number that was given again, leads to somebody else.
        if peer.pid != *pid {
            return Err(LiveError::WrongPeer { pid: *pid, peer: peer.pid, socket: socket.clone() });
        }
        if peer.uid != user() && user() != 0 {
            return Err(LiveError::NotAllowed(*pid));
        }
        for set in [UnixStream::set_read_timeout, UnixStream::set_write_timeout] {
            set(&stream, Some(self.patience)).map_err(|error| LiveError::Io(*pid, error))?;
        }
        Ok(stream)
    }
}

/// What a program reports of one moment.
#[derive(Clone, Debug)]
pub struct Report {
    /// The memory report's file.
    pub report: Vec<u8>,
    /// DMD's dump.
    pub dump: Option<Vec<u8>>,
}
