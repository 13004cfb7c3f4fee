//! `about-memory attach PID`: starts tracking in a running program that was built without DMD.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod loading;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::command::flags::{candidates, seconds};
use crate::context::Context;
use crate::error::Failure;

/// `about-memory attach`
#[derive(Debug, Args)]
#[command(after_help = "\
For a running program without DMD (Linux, glibc, x86-64). One of its threads is stopped for some milliseconds and loads a \
library, which tracks the blocks that are allocated from then on. Then the program has a socket, so that ps, snapshot, record, \
track and the other commands reach it.

Words after `--` are options as in $DMD: all blocks with full stacks by default, `-- --mode=profile` for a sample.

Blocks from before are known as a sum only. The library stays in the program to its end; `track PID --stop` puts it to sleep.")]
pub struct AttachArgs {
    /// A running process, by pid or by the name of its program
    #[arg(value_name = "PID|NAME", add = candidates::processes())]
    process: String,
    /// Give up after this time if no thread can be borrowed
    #[arg(long, value_name = "TIME", default_value = "10", value_parser = seconds)]
    timeout: Duration,
    /// The options of DMD, as in `$DMD`, after `--`
    #[arg(last = true, value_name = "WORD")]
    options: Vec<String>,
}

impl AttachArgs {
    /// Loads the library into the program, and waits for its socket.
    ///
    /// # Errors
    /// The program cannot be tracked, or the answer cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        loading::load(&self, context)
    }
}

/// There are no registers of other processors, and no such calls of other systems.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod loading {
    use super::{AttachArgs, Context, ExitCode, Failure};

    pub(super) fn load(
        _args: &AttachArgs,
        _context: &mut Context<'_>,
    ) -> Result<ExitCode, Failure> {
        Err("programs are attached to on Linux on x86-64 only; start it with `about-memory run`"
            .into())
    }
}
