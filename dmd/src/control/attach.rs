//! Starts a tracker that was loaded into a running program.

use std::str::FromStr;
use std::{fmt, io, thread};

use memreport::__private::{as_own, bytes_in_use, count_earlier, is_privileged};

use super::late_server;
use crate::hook::preloaded::program_has_tracker;
use crate::hook::start::{StartError, start};
use crate::mem::signals::block_all;
use crate::mem::{single_instance, sys};
use crate::sample::options::{Options, OptionsError};
use crate::sample::plan;
use crate::stack::own_code;
use crate::stack::thread::mark_own;

/// The reason why a tracker does not start in a running program, which goes on without it.
#[derive(Debug)]
pub enum AttachError {
    /// The program has more privileges than its starter.
    Privileged,
    /// The program declares DMD itself.
    OwnTracker,
    /// The options are invalid.
    Options(OptionsError),
    /// Tracking cannot start.
    Start(StartError),
    /// The program's calls cannot be redirected.
    NotRedirected(String),
}

impl fmt::Display for AttachError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttachError::Privileged => out.write_str(
                "the program has more privileges than its starter (set-user-ID, set-group-ID or file capabilities)",
            ),
            AttachError::OwnTracker => out.write_str(
                "the program has DMD already: use `about-memory track`",
            ),
            AttachError::Options(error) => write!(out, "{error}"),
            AttachError::Start(error) => write!(out, "{error}"),
            AttachError::NotRedirected(why) => out.write_str(why),
        }
    }
}

impl std::error::Error for AttachError {}

/// The blocks of a program before a tracker came into it.
#[derive(Clone, Copy, Debug)]
pub struct Earlier {
    /// Their usable bytes.
    pub bytes: u64,
    /// Their number.
    pub blocks: u64,
}

/// Starts tracking with these words of `$DMD`, has `redirect` lead the program's calls to the
/// tracker's functions, and serves the socket.
///
/// Blocks that live already are not tracked, only counted. If nobody has counted them, their bytes
/// are those of glibc's statistics, with headers and with free blocks that threads keep at hand.
///
/// # Errors
///
/// If the options are invalid, the program may not be tracked, or `redirect` fails.
pub fn attach(
    words: &str,
    earlier: Option<Earlier>,
    redirect: impl FnOnce() -> Result<(), String>,
) -> Result<(), AttachError> {
    if is_privileged() {
        return Err(AttachError::Privileged);
    }
    if program_has_tracker() {
        return Err(AttachError::OwnTracker);
    }
    let options = Options::from_str(words).map_err(AttachError::Options)?;
    as_own(|| {
        own_code::learn_module();
        sys::note_descriptor();
        let earlier =
            earlier.unwrap_or_else(|| Earlier { bytes: bytes_in_use().unwrap_or(0), blocks: 0 });
        count_earlier(earlier.bytes, earlier.blocks);
        start(options).map_err(AttachError::Start)?;
        plan::set_unknown_gap();
        single_instance::note_malloc();
        redirect().map_err(AttachError::NotRedirected)?;
        late_server::start();
        Ok(())
    })
}

/// Runs `work` on a new thread of the tracker's own, which handles no signals.
///
/// # Errors
///
/// If the thread cannot be started.
pub fn spawn_own(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = thread::Builder::new().name(name.into()).stack_size(128 * 1024);
    let started = thread.spawn(|| {
        mark_own();
        block_all();
        as_own(work);
    });
    started.map(drop)
}
