//! Keeps a log in a running program and takes its entries.

use crate::input::live::{Connection, LiveError};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use dmd::observe::MAX_LOG_LENGTH;
use memreport::serve::Request;
use memreport_analysis::analysis::Crates;
use memreport_analysis::read::Block;
use serde::Deserialize;
use std::num::NonZeroU64;

/// Flags that choose the allocations of a log.
#[derive(Debug, Args)]
pub(super) struct LogOptions {
    /// Sample: print each allocation with this probability, from 0 to 1
    #[arg(long, value_name = "NUMBER", conflicts_with = "sample_bytes")]
    probability: Option<f64>,
    /// Sample: print one allocation per this many bytes, on average
    #[arg(long, value_name = "BYTES")]
    sample_bytes: Option<NonZeroU64>,
    /// Print the allocations of threads with this name
    #[arg(long, value_name = "NAME")]
    thread: Option<String>,
    /// Print the allocations of the thread with this number of the kernel
    #[arg(long, value_name = "TID")]
    tid: Option<u32>,
    /// Print the allocations in this scope of the program, and in scopes inside it
    #[arg(long, value_name = "NAME")]
    scope: Option<String>,
    /// Print the allocations of this crate: its functions, or those of std that it calls
    ///
    /// The crate is known only after symbolication, so the program logs all crates.
    #[arg(long = "crate", value_name = "NAME")]
    crate_name: Option<String>,
    /// Keep at most N allocations in the program between two reads; older ones are dropped
    #[arg(long, value_name = "N", default_value_t = MAX_LOG_LENGTH,
          value_parser = RangedU64ValueParser::<usize>::new().range(..=MAX_LOG_LENGTH as u64))]
    length: usize,
}

impl LogOptions {
    /// Returns whether the block is of the crate whose allocations are printed.
    pub(super) fn prints(&self, crates: &Crates<'_>, block: &Block<'_>) -> bool {
        let Some(wanted) = &self.crate_name else { return true };
        // A package `a-b` is the crate `a_b`.
        let found = block.kind.alloc.and_then(|trace| crates.of(trace));
        found.is_some_and(|found| found.replace('-', "_") == wanted.replace('-', "_"))
    }
}

/// A log that a program keeps for this process. Dropping it ends the log.
pub(super) struct LogSession<'c> {
    connection: &'c Connection,
    number: u64,
}

/// Entries that were taken from the log.
pub(super) struct Taken {
    pub(super) lost: u64,
    /// The time of each block of the dump, in microseconds since 1970.
    pub(super) times: Vec<Option<u64>>,
    pub(super) dump: Vec<u8>,
}

#[derive(Deserialize)]
struct WireBegun {
    number: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireLog {
    lost: u64,
    times_us: Vec<Option<u64>>,
}

impl<'c> LogSession<'c> {
    pub(super) fn begin(
        connection: &'c Connection,
        options: &LogOptions,
    ) -> Result<Self, LiveError> {
        let mut request =
            Request::new("log").with("do", "begin").with("length", options.length.to_string());
        if let Some(probability) = options.probability {
            request = request.with("probability", probability.to_string());
        }
        if let Some(bytes) = options.sample_bytes {
            request = request.with("sample-bytes", bytes.to_string());
        }
        if let Some(name) = &options.thread {
            request = request.with("thread", name.clone());
        }
        if let Some(tid) = options.tid {
            request = request.with("tid", tid.to_string());
        }
        if let Some(name) = &options.scope {
            request = request.with("scope", name.clone());
        }
        let parts = connection.ask(&request)?;
        let begun: WireBegun = connection.parse(&parts)?;
        Ok(LogSession { connection, number: begun.number })
    }

    fn request(&self, what: &str) -> Request {
        Request::new("log").with("do", what).with("number", self.number.to_string())
    }

    pub(super) fn stay(&self) -> Result<(), LiveError> {
        self.connection.ask(&self.request("stay")).map(drop)
    }

    pub(super) fn take(&self) -> Result<Taken, LiveError> {
        let mut parts = self.connection.ask(&self.request("take"))?;
        let WireLog { lost, times_us } = self.connection.parse(&parts)?;
        let dump = parts.pop().map_or_else(Vec::new, |part| part.bytes);
        Ok(Taken { lost, times: times_us, dump })
    }
}

impl Drop for LogSession<'_> {
    fn drop(&mut self) {
        // A program that does not receive this ends the log without keep-alive messages.
        let _ = self.connection.ask(&self.request("end"));
    }
}
