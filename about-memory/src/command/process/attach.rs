//! `about-memory attach PID`: starts tracking in a running program that was built without DMD.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::command::flags::seconds;
use crate::command::launch::error::RunError;
use crate::command::launch::preload;
use crate::context::Context;
use crate::error::Failure;
use crate::glibc_heap::{self, Extent, Sum};
use crate::inject::inject;
use crate::input::live::{Connection, LiveError, program};

/// `about-memory attach`
#[derive(Debug, Args)]
#[command(after_help = "\
For a running program without DMD (Linux, glibc, x86-64). One of its threads is stopped for some milliseconds and loads a \
library, which tracks the blocks that are allocated from then on. Then the program has a socket, so that ps, snapshot, record, \
track and the other commands reach it.

Words after `--` are options as in $DMD: all blocks with full stacks by default, `-- --mode=profile` for a sample.

Blocks from before are known as a sum only. The library stays in the program to its end; `track PID --stop` puts it to sleep.")]
pub struct AttachArgs {
    /// The number of a running process
    #[arg(value_name = "PID")]
    process: u32,
    /// Give up after this time if no thread can be borrowed
    #[arg(long, value_name = "TIME", default_value = "10", value_parser = seconds)]
    timeout: Duration,
    /// The options of DMD, as in `$DMD`, after `--`
    #[arg(last = true, value_name = "WORD")]
    options: Vec<String>,
}

/// The time that the program has to open its socket.
const SOCKET_TIME: Duration = Duration::from_secs(10);

/// Counts the blocks that the program has; 0 if they cannot be counted.
fn earlier(pid: u32) -> Sum {
    let copied = glibc_heap::copy(pid, Extent::Sums).ok();
    let heap = copied.and_then(|copied| glibc_heap::read(&copied.image));
    heap.filter(|heap| heap.notes.is_empty()).map_or(Sum::default(), |heap| heap.used)
}

impl AttachArgs {
    /// Loads the library into the program, and waits for its socket.
    ///
    /// # Errors
    /// The program cannot be tracked, or the answer cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let pid = self.process;
        if program(pid).is_ok_and(|found| Connection::new(found, SOCKET_TIME).status().is_ok()) {
            return Err(format!(
                "process {pid} has a socket already; use `about-memory track {pid}`"
            )
            .into());
        }
        let library = preload::library().ok_or(RunError::NoLibrary)?;
        let words = if self.options.is_empty() { "1".to_owned() } else { self.options.join(" ") };
        words.parse::<dmd::Options>()?;
        // The program would not survive the end of this process in the midst of it.
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
        }
        let stopped = inject(pid, library, &words, earlier(pid), self.timeout)?;
        let end = Instant::now() + SOCKET_TIME;
        let tracking = loop {
            let status =
                program(pid).and_then(|found| Connection::new(found, SOCKET_TIME).status());
            match status {
                Ok(status) => break status.tracking,
                Err(error @ LiveError::NoProcess(_)) => return Err(error.into()),
                Err(error) if Instant::now() >= end => return Err(error.into()),
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        };
        writeln!(
            context.out,
            "process {pid} is tracked: {tracking} (a thread was stopped for {:.1} ms)",
            stopped.as_secs_f64() * 1000.0
        )?;
        Ok(ExitCode::SUCCESS)
    }
}
