//! Serves reports of a running program to `about-memory`, at a Unix socket that only its user may
//! open.
//!
//! [`serve()`] is enough for most programs. A [`Server`] has options, such as saving a report when
//! memory runs short.

mod commands;
mod history;
mod limits;
mod reply;
mod listen;
mod autosave;
pub mod place;
pub mod protocol;
pub(crate) mod save_folder;
mod sys;
mod work;

pub use autosave::Threshold;
pub use commands::{Answer, StaticCommand};
pub use protocol::{Part, Request};
pub use sys::{Peer, peer, user};

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::{fs, io, thread};

use autosave::Autosave;
use commands::Commands;
use history::History;
use listen::{Listener, Parts};
use save_folder::{Folder, Limits};
use sys::SignalHandler;

use crate::event::listeners::{start_retaining, stop_retaining};
use crate::event::on_alloc::as_own;
use crate::process::environment::variable;
use crate::report::registry::report_value;
use crate::snapshot::descriptor::out_of_the_way;

/// Starts a small thread that answers requests at a socket, for as long as the program runs.
/// `about-memory ps` lists all programs with such a socket.
///
/// # Errors
///
/// Fails if the socket cannot be created, or if this process serves already.
///
/// ```no_run
/// # fn main() -> std::io::Result<()> {
/// memreport::serve()?;
/// # Ok(())
/// # }
/// ```
pub fn serve() -> io::Result<()> {
    Server::default().start().map(|_| ())
}

/// A server with options.
///
/// ```
/// use memreport::serve::{Server, Threshold};
/// use std::time::Duration;
///
/// # fn main() -> std::io::Result<()> {
/// # let folder = std::env::temp_dir().join(format!("memreport-doc-{}", std::process::id()));
/// let serving = Server::default()
///     .name("indexer")
///     .save_into(&folder)
///     .save_at(Threshold::PercentOfLimit(90))
///     .save_at(Threshold::ResidentStep(1 << 30))
///     .save_every(Duration::from_secs(600), 24, folder.join("dumps"))
///     .keep_every(Duration::from_secs(10), 60)
///     .start()?;
/// assert!(serving.socket().exists());
/// serving.stop();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing is served until it is started"]
pub struct Server {
    name: Option<String>,
    folder: Option<PathBuf>,
    timeout: Duration,
    commands: Commands,
    signal: Option<i32>,
    thresholds: Vec<Threshold>,
    cooldown: Duration,
    saved: Option<PathBuf>,
    limits: Limits,
    periodic: Option<(Duration, usize, PathBuf)>,
    kept: Option<(Duration, usize)>,
}

impl Default for Server {
    fn default() -> Self {
        Server {
            name: None,
            folder: None,
            timeout: Duration::from_secs(5),
            commands: Commands::default(),
            signal: None,
            thresholds: Vec::new(),
            cooldown: Duration::from_secs(300),
            saved: None,
            limits: Limits::default(),
            periodic: None,
            kept: None,
        }
    }
}

impl Server {
    /// Sets the program's name in lists. The default is the name of its file.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the folder of the socket. The default is `$XDG_RUNTIME_DIR`, or `/tmp/memreport-UID` if
    /// that is not set, does not exist, or may be entered by others.
    ///
    /// The folder must exist. Its mode and owner are not checked: who may enter it is the caller's
    /// choice. `about-memory` finds a socket elsewhere only by its path.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Sets the timeout of a collection, after which it continues without the reporter that is
    /// running: 5 seconds by default, an hour at most. A client may set another one.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout.min(LONGEST_TIMEOUT);
        self
    }

    /// Adds a command of the program's own.
    pub fn command(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        run: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        self.commands.add(name.into(), description.into(), run);
        self
    }

    /// Saves a report at each signal of this kind, such as `libc::SIGUSR2`. The program must not
    /// handle the signal itself. Forked children ignore it.
    pub fn save_on_signal(mut self, signal: i32) -> Self {
        self.signal = Some(signal);
        self
    }

    /// Saves a report when this threshold is exceeded, which is checked once a second.
    pub fn save_at(mut self, threshold: Threshold) -> Self {
        self.thresholds.push(threshold);
        self
    }

    /// Sets the time after a report by threshold before the next one: 5 minutes by default.
    pub fn cooldown(mut self, cooldown: Duration) -> Self {
        self.cooldown = cooldown;
        self
    }

    /// Sets the folder of saved reports. The default is the current folder.
    pub fn save_into(mut self, folder: impl Into<PathBuf>) -> Self {
        self.saved = Some(folder.into());
        self
    }

    /// Sets the most saved reports, 5 by default, and the most entries of each, 10,000 by default.
    /// Smaller entries are added up.
    pub fn save_at_most(mut self, files: usize, reports: usize) -> Self {
        (self.limits.files, self.limits.reports) = (files, reports);
        self
    }

    /// Saves a report at the start and at intervals into a folder of its own, with DMD's dump
    /// beside it while DMD is awake. The newest `most` of this process and of earlier ones are
    /// kept.
    ///
    /// If saving fails, for example on a full disk, the program's status reports it. The next
    /// interval tries again.
    pub fn save_every(mut self, every: Duration, most: usize, folder: impl Into<PathBuf>) -> Self {
        self.periodic = Some((every.max(SHORTEST_INTERVAL), most, folder.into()));
        self
    }

    /// Sets the most bytes of saved reports and dumps in a folder, 1 GiB by default. The newest
    /// report is always kept.
    pub fn save_at_most_bytes(mut self, bytes: u64) -> Self {
        self.limits.bytes = bytes;
        self
    }

    /// Keeps a snapshot in memory at intervals, at most `most`: the program's past in
    /// `about-memory`.
    pub fn keep_every(mut self, every: Duration, most: usize) -> Self {
        self.kept = Some((every.max(SHORTEST_INTERVAL), most));
        self
    }

    /// Starts the server's thread.
    ///
    /// # Errors
    ///
    /// Fails if the socket cannot be created, if the signal is taken, or if this process serves
    /// already.
    pub fn start(self) -> io::Result<Serving> {
        let own = std::process::id();
        if SERVING.swap(own, Relaxed) == own {
            let message = "this process serves already: one server is enough for all its crates";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        let started = self.start_alone();
        if started.is_err() {
            SERVING.store(0, Relaxed);
        }
        started
    }

    fn start_alone(self) -> io::Result<Serving> {
        let folder = match &self.folder {
            Some(folder) => folder.clone(),
            None => place::prepared(variable("XDG_RUNTIME_DIR"), user())?,
        };
        let pid = std::process::id();
        let socket = folder.join(place::socket_name(pid));
        // The socket listens before it gets its name, so every client that finds it can connect.
        let unfinished = folder.join(format!(".memreport-{pid}"));
        place::clear(&unfinished)?;
        let signal = self.signal.map(SignalHandler::install).transpose()?;
        match self.start_at(&unfinished, &socket, signal.as_ref()) {
            Ok(stop) => Ok(Serving { socket, stop, pid, signal }),
            Err(error) => {
                if let Some(signal) = signal {
                    signal.remove();
                }
                // Its own error matters less than the first one.
                let _ = place::clear(&unfinished);
                Err(error)
            }
        }
    }

    /// Starts the thread, and renames the socket from `unfinished` to `path`. Returns the end of a
    /// pipe that stops the thread.
    fn start_at(
        self,
        unfinished: &Path,
        path: &Path,
        signal: Option<&SignalHandler>,
    ) -> io::Result<UnixStream> {
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let socket = sys::listen(unfinished).map_err(named)?;
        let closed_in_children = sys::close_in_children(&socket)?;
        let name = self.name.clone().unwrap_or_else(crate::snapshot::own_name);
        let (timeout, commands) = (self.timeout, self.commands.clone());
        let mut autosave = self.autosave(&name);
        if let Some(signal) = signal {
            autosave.set_signal_pipe(signal.reading_end()?);
        }
        as_own(|| {
            let (waked, waker) = UnixStream::pair()?;
            let aside = |end: UnixStream| UnixStream::from(out_of_the_way(end.into()));
            let wake = (aside(waked), aside(waker));
            wake.0.set_nonblocking(true)?;
            wake.1.set_nonblocking(true)?;
            let stop = wake.0.try_clone()?;
            fs::rename(unfinished, path).map_err(named)?;
            let parts =
                Parts { closed_in_children, socket, name, timeout, commands, autosave, wake };
            let thread = thread::Builder::new().name("memreport".into()).stack_size(256 * 1024);
            let spawned = thread.spawn(|| as_own(|| Listener::new(parts).serve()));
            if spawned.is_err() {
                // The thread's error matters more.
                let _ = fs::remove_file(path);
            }
            spawned?;
            start_retaining();
            Ok(stop)
        })
    }

    /// Returns the occasions at which the server saves and keeps reports.
    fn autosave(self, name: &str) -> Autosave {
        let saved = self.saved.unwrap_or_else(|| PathBuf::from("."));
        let saved = Folder::new(saved, name, self.limits);
        let mut autosave = Autosave::new(self.thresholds, self.cooldown, saved);
        if let Some((every, most)) = self.kept {
            let history = Arc::new(History::new(most));
            let description = "Snapshots of the last while that the program keeps.";
            report_value("explicit/memreport/history", &history, description).forever();
            autosave.history = Some((every, history));
        }
        if let Some((every, most, folder)) = self.periodic {
            let limits = Limits { files: most, ..self.limits };
            let folder = Folder::new(folder, &format!("{name}-every"), limits);
            autosave.periodic = Some((every, Arc::new(folder)));
        }
        autosave
    }
}

/// The longest timeout of a collection.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(3600);

/// The shortest interval of reports, so that the program itself keeps most of the time.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);

/// The process that serves, or 0. A forked child may serve as well.
static SERVING: AtomicU32 = AtomicU32::new(0);

/// A running server. It runs until the program ends or [`stop`](Self::stop) is called.
#[derive(Debug)]
pub struct Serving {
    socket: PathBuf,
    stop: UnixStream,
    /// The process that serves. A forked child has a copy of this value.
    pid: u32,
    signal: Option<SignalHandler>,
}

impl Serving {
    /// Returns the path of the socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Stops the server, removes the socket, and restores the action at the signal of
    /// [`save_on_signal`](Server::save_on_signal). Does nothing in a forked child of the process
    /// that serves.
    pub fn stop(self) {
        if self.pid != std::process::id() {
            return;
        }
        // An error means that it was removed already.
        let _ = fs::remove_file(&self.socket);
        let _ = self.stop.shutdown(Shutdown::Both);
        if let Some(signal) = self.signal {
            signal.remove();
        }
        SERVING.store(0, Relaxed);
        stop_retaining();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_starts_again_after_it_was_stopped_or_refused() {
        let folder = std::env::temp_dir().join(format!("memreport-again-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let server = || Server::default().folder(&folder).save_into(&folder);
        for _ in 0..2 {
            let refused = server().save_on_signal(i32::MAX).start();
            assert!(refused.is_err(), "no signal has this number");
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
            server().timeout(Duration::MAX).start().unwrap().stop();
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_longest_timeout_and_the_shortest_interval_are_limited() {
        let server = Server::default().timeout(Duration::MAX).keep_every(Duration::ZERO, 7);
        assert_eq!(server.timeout, Duration::from_secs(3600));
        assert_eq!(server.kept, Some((Duration::from_millis(10), 7)));
    }
}
