//! Loads the library into a running program.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::AttachArgs;
use crate::command::launch::error::RunError;
use crate::command::launch::preload;
use crate::context::Context;
use crate::error::Failure;
use crate::glibc_heap::{self, Extent, Sum};
use crate::inject::inject;
use crate::input::live::{Connection, LiveError, any_process, program};

/// The time that the program has to open its socket.
const SOCKET_TIME: Duration = Duration::from_secs(10);

/// Counts the blocks that the program has; 0 if they cannot be counted.
fn earlier(pid: u32) -> Sum {
    let copied = glibc_heap::copy(pid, Extent::Sums).ok();
    let heap = copied.and_then(|copied| glibc_heap::read(&copied.image));
    heap.filter(|heap| heap.notes.is_empty()).map_or(Sum::default(), |heap| heap.used)
}

/// Loads the library, and waits for the program's socket.
pub(super) fn load(args: &AttachArgs, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
    let pid = any_process(&args.process)?;
    if program(pid).is_ok_and(|found| Connection::new(found, SOCKET_TIME).status().is_ok()) {
        return Err(
            format!("process {pid} has a socket already; use `about-memory track {pid}`").into()
        );
    }
    let library = preload::library().ok_or(RunError::NoLibrary)?;
    let words = if args.options.is_empty() { "1".to_owned() } else { args.options.join(" ") };
    words.parse::<dmd::Options>()?;
    // The program would not survive the end of this process in the midst of it.
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let stopped = inject(pid, library, &words, earlier(pid), args.timeout)?;
    let end = Instant::now() + SOCKET_TIME;
    let tracking = loop {
        let status = program(pid).and_then(|found| Connection::new(found, SOCKET_TIME).status());
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
