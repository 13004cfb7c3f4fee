//! Finds running programs, and talks to them over their sockets.
//!
//! memreport's sockets are those of Unix. On other systems no program is found, and the error of
//! asking one names what to do instead.

mod target;
#[cfg(unix)]
mod sockets;
#[cfg(not(unix))]
#[path = "live/no_sockets.rs"]
mod sockets;

use std::time::Duration;

pub use sockets::*;
pub use target::Target;

/// The time within which a program must answer, unless an option states another.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
