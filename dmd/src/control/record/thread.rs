//! The thread of a recording: it reads events and writes them until the recording ends.
//!
//! Hooks wait for this thread. So it takes no lock that the program may hold while it allocates:
//! not the linker's, not those of marks and scopes, and it handles no signals of the program.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use memreport::__private::as_own;

use super::RecordingSummary;
use super::writer::{Settings, Writer};
use crate::event::events::{self, Listener};
use crate::mem::signals::block_all;
use crate::stack::thread::{Thread, mark_own};

/// A thread that writes a recording.
#[derive(Debug)]
pub(super) struct RecorderThread {
    must_end: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<RecordingSummary>>,
}

/// The reason why a recorder does not begin.
#[derive(Debug)]
pub(super) enum NotBegun {
    Busy,
    Failed(io::Error),
}

/// The number of times that the end of a recording waits a millisecond for unfinished writers.
const LAST_LOOKS: u32 = 500;

impl RecorderThread {
    /// Starts the thread. When this returns, it receives events.
    pub(super) fn start(file: File, settings: Settings) -> Result<Self, NotBegun> {
        let must_end = Arc::new(AtomicBool::new(false));
        let (send, begun) = mpsc::channel();
        let thread = {
            let must_end = Arc::clone(&must_end);
            let run = move || {
                Thread::current(|thread| thread.is_recorder.set(true));
                mark_own();
                block_all();
                as_own(|| run(file, settings, &Orders { begun: send, must_end }))
            };
            Builder::new().name("dmd-record".into()).spawn(run).map_err(NotBegun::Failed)?
        };
        Self { must_end, thread }.when_begun(&begun)
    }

    fn when_begun(self, begun: &Receiver<bool>) -> Result<Self, NotBegun> {
        match begun.recv() {
            Ok(true) => Ok(self),
            Ok(false) => Err(NotBegun::Busy),
            Err(_) => {
                let error = self.end().err();
                Err(NotBegun::Failed(error.unwrap_or_else(|| io::ErrorKind::Other.into())))
            }
        }
    }

    /// Ends the recording, and returns what it has written.
    pub(super) fn end(self) -> io::Result<RecordingSummary> {
        // Release, with the Acquire of `run`: events before this are in the recording.
        self.must_end.store(true, Release);
        events::work().change();
        events::work().wake();
        let ended = self.thread.join();
        ended.unwrap_or_else(|_| Err(io::Error::other("the recorder panicked")))
    }
}

/// The orders for the thread.
struct Orders {
    begun: Sender<bool>,
    must_end: Arc<AtomicBool>,
}

fn run(file: File, settings: Settings, orders: &Orders) -> io::Result<RecordingSummary> {
    let mut writer = Writer::new(file, settings)?;
    // No hook waits for this thread yet, so it may list modules.
    writer.write_header()?;
    let Some(mut listener) = Listener::begin(settings.may_lose) else {
        let _ = orders.begun.send(false);
        return Ok(RecordingSummary::default());
    };
    writer.take_sums();
    // If nobody waits for the answer, nobody ends the recording either.
    let _ = orders.begun.send(true);
    loop {
        let seen = events::work().changes();
        let ends = orders.must_end.load(Acquire);
        writer.write_new(&mut listener)?;
        if ends {
            break;
        }
        events::work().wait(seen, settings.interval);
    }
    writer.take_sums();
    for _ in 0..LAST_LOOKS {
        writer.write_new(&mut listener)?;
        if listener.unwritten() == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let lost = listener.lost() + listener.unwritten();
    // From here on no hook waits.
    listener.end();
    writer.finish(lost)
}
