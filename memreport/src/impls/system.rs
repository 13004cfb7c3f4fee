//! Measures handles, times and hashers of the operating system, which own no heap. *Exact.*

use std::collections::hash_map::{DefaultHasher, RandomState};
use std::net::{TcpListener, TcpStream, UdpSocket};
#[cfg(unix)]
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::thread::ThreadId;
use std::time::{Instant, SystemTime};

use crate::{MallocSizeOf, Ops};

owns_nothing!(Instant, SystemTime, ThreadId, RandomState, DefaultHasher);
owns_nothing!(TcpListener, TcpStream, UdpSocket, std::fs::File, std::fs::Metadata);
owns_nothing!(std::io::ErrorKind, std::alloc::System);
#[cfg(unix)]
owns_nothing!(UnixDatagram, UnixListener, UnixStream, std::os::fd::OwnedFd);

slices_own_nothing!(std::ffi::OsStr, std::path::Path);
