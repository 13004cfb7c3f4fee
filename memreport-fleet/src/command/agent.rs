//! `memreport-fleet agent --every TIME --to STORE`: ships snapshots of the served programs of this
//! host.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use about_memory::Failure;
use clap::Args;

use super::resource_args::ResourceArgs;
use crate::agent::{self, Options};
use crate::store::Store;

/// `memreport-fleet agent`
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// The store of the dataset: `file:///folder`, `s3://bucket/folder`, `gs://…` or `az://…`.
    /// Credentials come from the standard variables, files and services of each
    #[arg(long, value_name = "STORE")]
    to: String,

    /// The time between two snapshots of a program
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    every: Duration,

    /// The most time that a program may spend on snapshots, in percent
    #[arg(long, value_name = "PERCENT", default_value = "1")]
    max_share: f64,

    /// Wait at most this long for a program
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    timeout: Duration,

    /// Take a dump of the heap with every such snapshot, of programs with a tracker; 0 for none
    #[arg(long, value_name = "NUMBER", default_value_t = 15)]
    dump_every: u32,

    /// The time between two batches of files
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = time)]
    batch: Duration,

    /// The folder of files that are not shipped yet
    #[arg(long, value_name = "DIR", default_value = "/var/spool/memreport-fleet")]
    spool: PathBuf,

    /// The most bytes in that folder; no snapshots are taken while it is full
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    spool_limit: u64,

    /// Serve the agent's own metrics at this address, at `/metrics`
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,

    /// Look for sockets of programs in this folder alone; repeat for several [default: the folders
    /// of this user, or of all users for root]
    #[arg(long, value_name = "DIR")]
    sockets: Vec<PathBuf>,

    /// Leave private words out of reports
    #[arg(long)]
    anonymize: bool,

    /// Print a line for each snapshot
    #[arg(long)]
    verbose: bool,

    /// Stop after this many rounds, when all is shipped
    #[arg(long, value_name = "NUMBER")]
    rounds: Option<u64>,

    /// Flags of the resource of programs that do not state their own.
    #[command(flatten)]
    resource: ResourceArgs,
}

/// Parses `500ms`, `60s`, `15m`, `2h`, or a number of seconds.
fn time(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let seconds: f64 = number.parse().map_err(|_| format!("`{text}` is no time, such as 60s"))?;
    let factor = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{unit}` is no unit of time; there are ms, s, m, h")),
    };
    Duration::try_from_secs_f64(seconds * factor)
        .map_err(|_| format!("`{text}` is no time, such as 60s"))
}

impl AgentArgs {
    /// Runs the agent until SIGTERM or Ctrl-C.
    ///
    /// # Errors
    /// The store's address or the spool cannot be used.
    pub(super) fn run(self, notes: &mut dyn Write) -> Result<(), Failure> {
        let store = Store::open(&self.to)?;
        let options = Options {
            every: self.every,
            most_share: self.max_share / 100.0,
            timeout: self.timeout,
            dump_every: self.dump_every,
            batch: self.batch,
            spool: self.spool,
            spool_limit: self.spool_limit << 20,
            metrics: self.metrics,
            resource: self.resource.resource(),
            sockets: self.sockets,
            anonymize: self.anonymize,
            verbose: self.verbose,
            rounds: self.rounds,
        };
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        agent::run(&options, store, &stop, notes)
    }
}

#[cfg(test)]
mod tests {
    use super::time;
    use std::time::Duration;

    #[test]
    fn times_have_units() {
        for (text, millis) in [("60s", 60_000), ("1.5m", 90_000), ("2h", 7_200_000), ("7", 7000)] {
            assert_eq!(time(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for bad in ["", "x", "5d", "-1s", "1e99h"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }
}
