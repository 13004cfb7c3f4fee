//! `about-memory serve [FILE…|PID…]`: the page in a browser on this machine, with fresh moments of running programs.

mod answer;
mod gate;
mod http;
mod program;
mod shelf;
mod source;

use crate::cli::InputArgs;
use crate::html::moment::Moment;
use crate::live::{self, LiveError, Target};
use crate::open;
use crate::show::Failure;
use answer::Library;
use clap::Args;
use gate::Gate;
use program::Program;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use tokio::net::TcpListener;

pub use source::{Measured, Source};

/// `about-memory serve`
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Memory reports to show, the oldest first, and running programs to measure, by number; without any, all running
    /// programs that can be asked (`about-memory ps` lists them)
    #[arg(value_name = "FILE|PID")]
    pub targets: Vec<PathBuf>,
    /// The port to listen on [default: a free one]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// How files are read.
    #[command(flatten)]
    pub input: InputArgs,
}

/// Serves the page until it is interrupted. The address goes to `out`, remarks go to `notes`.
///
/// # Errors
/// Files that cannot be shown, and a port that cannot be had.
pub fn main(args: &ServeArgs, out: &mut dyn Write, notes: &mut dyn Write) -> Result<(), Failure> {
    let mut server = Server::bind(args.port)?;
    for path in &args.targets {
        match open::running(path) {
            Some(target) => server.add_program(&target)?,
            None => server.library.add(Moment::of_file(path, args.input.options())?),
        }
    }
    if args.targets.is_empty() {
        for found in live::find() {
            // It may have ended since it was found.
            if let Err(error) = server.add_program(&Target::Pid(found.pid)) {
                writeln!(notes, "about-memory: {error}")?;
            }
        }
        if server.library.has_no_source() {
            return Err(
                "no running program can be asked, and no file is named; a program that calls \
                        `memreport::serve()` can be asked"
                    .into(),
            );
        }
    }
    for note in server.measure_all() {
        writeln!(notes, "about-memory: {note}")?;
    }
    writeln!(out, "{}", server.address())?;
    out.flush()?;
    server.run()
}

/// A page that is being served on this machine.
#[derive(Debug)]
pub struct Server {
    gate: Gate,
    listener: std::net::TcpListener,
    library: Library,
}

impl Server {
    /// Takes a port of the loopback interface; 0 is any that is free.
    ///
    /// # Errors
    /// When the port is taken, or the system has no random numbers for a token.
    pub fn bind(port: u16) -> Result<Server, Failure> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = std::net::TcpListener::bind(address)
            .map_err(|error| format!("port {port}: {error}; name another with --port"))?;
        listener.set_nonblocking(true)?;
        let gate = Gate::new(listener.local_addr()?.port(), token()?);
        Ok(Server { gate, listener, library: Library::default() })
    }

    /// Has a program measured from the page.
    pub fn add_source(&mut self, source: Box<dyn Source>) {
        self.library.add_source(source);
    }

    /// Has a running program measured from the page.
    ///
    /// # Errors
    /// When there is none that can be asked.
    pub fn add_program(&mut self, target: &Target) -> Result<(), LiveError> {
        self.add_source(Box::new(Program::new(target)?));
        Ok(())
    }

    /// Takes a first moment of every program; answers what went wrong.
    pub fn measure_all(&self) -> Vec<String> {
        self.library.measure_all()
    }

    /// The address to open, with the token.
    #[must_use]
    pub fn address(&self) -> String {
        self.gate.address()
    }

    /// Serves for as long as the process lives.
    ///
    /// # Errors
    /// When the system gives no sockets or threads.
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

/// Requests that are being worked on at once; more wait.
const BLOCKING: usize = 8;

/// 128 random bits, as hexadecimal digits.
fn token() -> Result<String, Failure> {
    let mut bytes = [0_u8; 16];
    let length = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    if length != bytes.len() {
        return Err("the system has too few random numbers for a token".into());
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
