//! The socket of a running program, with one deadline for everything: connecting, the request and
//! the answer.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketType};

/// The interval at which a connection to a program with a full queue is tried again.
const RETRY: Duration = Duration::from_millis(5);

/// A moment after which nothing is awaited; none if it is too far away to be represented.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(Option<Instant>);

impl Deadline {
    pub(super) fn after(timeout: Duration) -> Self {
        Deadline(Instant::now().checked_add(timeout))
    }

    /// Returns the time that is left; `None` if it is unlimited.
    fn left(self) -> io::Result<Option<Duration>> {
        let Some(end) = self.0 else { return Ok(None) };
        let left = end.saturating_duration_since(Instant::now());
        // The kind of the kernel's own timeouts.
        if left.is_zero() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(Some(left)) }
    }
}

/// A stream whose reads and writes end at the deadline.
///
/// A time limit for each read would let a program send a byte now and then for ever.
#[derive(Debug)]
pub(super) struct Stream {
    inner: UnixStream,
    deadline: Deadline,
}

impl Stream {
    /// Connects to a program, and waits while its queue is full.
    pub(super) fn connect(socket: &Path, deadline: Deadline) -> io::Result<Self> {
        loop {
            match try_connect(socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let left = deadline.left()?.unwrap_or(RETRY);
                    thread::sleep(left.min(RETRY));
                }
                connected => return Ok(Stream { inner: connected?, deadline }),
            }
        }
    }

    pub(super) fn inner(&self) -> &UnixStream {
        &self.inner
    }
}

/// Connects without waiting.
pub(super) fn try_connect(socket: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::from(open()?);
    stream.set_nonblocking(true)?;
    net::connect(&stream, &SocketAddrUnix::new(socket)?)?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Opens a socket that programs started by this one do not inherit.
#[cfg(target_os = "linux")]
fn open() -> rustix::io::Result<OwnedFd> {
    net::socket_with(AddressFamily::UNIX, SocketType::STREAM, net::SocketFlags::CLOEXEC, None)
}

/// Opens a socket that programs started by this one do not inherit, unless one starts between these
/// two calls.
#[cfg(not(target_os = "linux"))]
fn open() -> rustix::io::Result<OwnedFd> {
    let opened = net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&opened, rustix::io::FdFlags::CLOEXEC)?;
    Ok(opened)
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.set_read_timeout(self.deadline.left()?)?;
        self.inner.read(buffer)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.set_write_timeout(self.deadline.left()?)?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
