//! Serves the page on a port of this machine.

use super::answer::Library;
use super::gate::Gate;
use super::http;
use crate::command::view::page::program::Program;
use crate::command::view::page::recording::PageRecording;
use crate::command::view::page::snapshot::PageSnapshot;
use crate::command::view::page::source::Source;
use crate::error::Failure;
use crate::input::live::{LiveError, Target};
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::TcpListener;

/// A server of the page.
#[derive(Debug)]
pub struct Server {
    gate: Gate,
    listener: std::net::TcpListener,
    library: Library,
}

impl Server {
    /// Binds a port of the loopback interface; 0 is any free port.
    ///
    /// # Errors
    /// The port is taken, or the system has no random numbers for a token.
    pub fn bind(port: u16) -> Result<Server, Failure> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = std::net::TcpListener::bind(address)
            .map_err(|error| format!("port {port}: {error}; name another with --port"))?;
        listener.set_nonblocking(true)?;
        let gate = Gate::new(listener.local_addr()?.port(), token()?);
        Ok(Server { gate, listener, library: Library::default() })
    }

    /// Adds a snapshot that the page shows.
    pub(super) fn add_snapshot(&mut self, snapshot: PageSnapshot) {
        self.library.add(snapshot);
    }

    /// Adds a recording that the page shows.
    pub(super) fn add_recording(&mut self, recording: PageRecording) {
        self.library.add_recording(recording);
    }

    /// Returns whether no program can be measured.
    pub(super) fn has_no_source(&self) -> bool {
        self.library.has_no_source()
    }

    /// Adds a program that the page can measure.
    pub fn add_source(&mut self, source: Box<dyn Source>) {
        self.library.add_source(source);
    }

    /// Adds a running program that the page can measure.
    ///
    /// # Errors
    /// The program does not answer.
    pub fn add_program(&mut self, target: &Target) -> Result<(), LiveError> {
        self.add_source(Box::new(Program::new(target, false)?));
        Ok(())
    }

    /// Takes a first snapshot of every program. Returns the errors.
    pub fn measure_all(&self) -> Vec<String> {
        self.library.measure_all()
    }

    /// Returns the address to open, with the token.
    #[must_use]
    pub fn address(&self) -> String {
        self.gate.address()
    }

    /// Serves until the process ends.
    ///
    /// # Errors
    /// The system gives no sockets or threads.
    pub fn run(self) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING)
            .build()?;
        runtime.block_on(async {
            let listener = TcpListener::from_std(self.listener)?;
            http::serve(listener, self.gate, self.library).await
        })
    }
}

/// The largest number of requests in progress; more wait.
const BLOCKING: usize = 8;

/// Returns 128 random bits, as hexadecimal digits.
fn token() -> Result<String, Failure> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| format!("the system has no random numbers for a token: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
