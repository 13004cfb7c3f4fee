//! A running program can be asked: by `about-memory`, at a Unix socket that only its own user may open.
//!
//! [`serve()`] is all that most programs need; a [`Server`] has wishes, such as a report that is saved when memory runs
//! short.

mod commands;
mod history;
mod limits;
mod listen;
mod moments;
pub mod place;
pub mod protocol;
pub(crate) mod saved;
mod sys;
mod work;

pub use commands::{Answer, StaticCommand};
pub use moments::Threshold;
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

use commands::Commands;
use history::History;
use listen::{Listener, Parts};
use moments::Moments;
use saved::{Folder, Limits};

use crate::event::listeners::{start_keeping, stop_keeping};
use crate::event::on_alloc::as_own;
use crate::report::registry::report_value;

/// Starts a small thread that answers at a socket, for as long as the program runs. `about-memory ps` lists all programs that
/// can be asked.
///
/// # Errors
///
/// When the socket cannot be made, or this process serves already.
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

/// A server with wishes.
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
    patience: Duration,
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
            patience: Duration::from_secs(5),
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
    /// What the program is called in lists; otherwise by the name of its file.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Where the socket is made; otherwise in `$XDG_RUNTIME_DIR`, or in `/tmp/memreport-UID` where that is not set.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// How long a collection may take before it is gone on without the reporter that is at work: 5 seconds, unless said
    /// otherwise here or by the client.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
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

    /// Saves a report whenever this signal comes, as `libc::SIGUSR2`. The program must not handle it itself.
    pub fn save_on_signal(mut self, signal: i32) -> Self {
        self.signal = Some(signal);
        self
    }

    /// Saves a report when this threshold is passed, looked at once a second.
    pub fn save_at(mut self, threshold: Threshold) -> Self {
        self.thresholds.push(threshold);
        self
    }

    /// How long to wait after a report that a threshold caused before another one does: 5 minutes, unless said otherwise.
    pub fn cooldown(mut self, cooldown: Duration) -> Self {
        self.cooldown = cooldown;
        self
    }

    /// Where reports are saved: the current folder, unless said otherwise.
    pub fn save_into(mut self, folder: impl Into<PathBuf>) -> Self {
        self.saved = Some(folder.into());
        self
    }

    /// How many saved reports are kept, 5 unless said otherwise, and how many entries each has at most: 10,000. Beyond, the
    /// smallest are added up.
    pub fn save_at_most(mut self, files: usize, reports: usize) -> Self {
        (self.limits.files, self.limits.reports) = (files, reports);
        self
    }

    /// Saves a report at the start and then at intervals, into a folder of its own, while the program goes on; with DMD's dump
    /// beside it while DMD is awake. The newest `most` are kept, of this process and of earlier ones of this program.
    ///
    /// What cannot be saved, as on a full disk, is said in the program's status, and tried again at the next interval.
    pub fn save_every(mut self, every: Duration, most: usize, folder: impl Into<PathBuf>) -> Self {
        // Whatever is asked for, the program is to have most of the time.
        self.periodic = Some((every.max(Duration::from_millis(10)), most, folder.into()));
        self
    }

    /// How many bytes the saved reports and dumps of a folder may have, 1 GiB unless said otherwise. The newest is kept in any
    /// case.
    pub fn save_at_most_bytes(mut self, bytes: u64) -> Self {
        self.limits.bytes = bytes;
        self
    }

    /// Keeps a snapshot in memory at intervals, so many at most: what `about-memory` shows of the program's past.
    pub fn keep_every(mut self, every: Duration, most: usize) -> Self {
        self.kept = Some((every, most));
        self
    }

    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// When the socket cannot be made, the signal is taken, or this process serves already.
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
        let uid = user();
        let folder = match self.folder {
            Some(folder) => folder,
            None => {
                let folder = place::folder(std::env::var_os("XDG_RUNTIME_DIR"), uid);
                place::prepare(&folder, uid)?;
                folder
            }
        };
        let pid = std::process::id();
        let path = folder.join(place::socket_name(pid));
        // Whoever finds it under its name can connect: it listens before it gets the name.
        let unfinished = folder.join(format!(".memreport-{pid}"));
        place::clear(&unfinished)?;
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let socket = sys::listen(&unfinished).map_err(named)?;
        fs::rename(&unfinished, &path).map_err(named)?;
        sys::close_in_children(&socket)?;
        let name = self.name.unwrap_or_else(crate::snapshot::own_name);
        let saved = self.saved.unwrap_or_else(|| PathBuf::from("."));
        let saved = Folder::new(saved, &name, self.limits);
        let mut moments = Moments::new(self.thresholds, self.cooldown, saved);
        if let Some(signal) = self.signal {
            moments.signalled_by(sys::signal_to_pipe(signal)?);
        }
        if let Some((every, most)) = self.kept {
            let history = Arc::new(History::new(most));
            let description = "Snapshots of the last while that the program keeps.";
            report_value("explicit/memreport/history", &history, description).forever();
            moments.history = Some((every, history));
        }
        if let Some((every, most, folder)) = self.periodic {
            let limits = Limits { files: most, ..self.limits };
            let folder = Folder::new(folder, &format!("{name}-every"), limits);
            moments.periodic = Some((every, Arc::new(folder)));
        }
        let (patience, commands) = (self.patience, self.commands);
        let stop = as_own(|| {
            let wake = UnixStream::pair()?;
            wake.0.set_nonblocking(true)?;
            wake.1.set_nonblocking(true)?;
            let stop = wake.0.try_clone()?;
            let parts = Parts { socket, name, patience, commands, moments, wake };
            let thread = thread::Builder::new().name("memreport".into()).stack_size(256 * 1024);
            thread.spawn(|| as_own(|| Listener::new(parts).serve()))?;
            start_keeping();
            io::Result::Ok(stop)
        })?;
        Ok(Serving { socket: path, stop })
    }
}

/// The process that serves, or 0: a forked child may serve as well.
static SERVING: AtomicU32 = AtomicU32::new(0);

/// A server that runs, until the program ends or [`stop`](Self::stop) is called.
#[derive(Debug)]
pub struct Serving {
    socket: PathBuf,
    stop: UnixStream,
}

impl Serving {
    /// Where it listens.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Ends it: the socket is removed, and nobody is answered any more.
    pub fn stop(self) {
        // It may be gone already; then so be it.
        let _ = fs::remove_file(&self.socket);
        let _ = self.stop.shutdown(Shutdown::Both);
        SERVING.store(0, Relaxed);
        stop_keeping();
    }
}
