//! Keeps a log in a running program and takes its entries.

use crate::input::live::{Connection, LiveError};
use clap::Args;
use memreport::serve::{Part, Request};
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
    /// Keep at most N allocations in the program between two reads; older ones are dropped
    #[arg(long, value_name = "N", default_value_t = dmd::observe::MAX_LOG_LENGTH)]
    length: usize,
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
        let parts = connection.ask(&request)?;
        let begun: WireBegun = parse(connection, &parts)?;
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
        let WireLog { lost, times_us } = parse(self.connection, &parts)?;
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

/// Parses the first part of an answer.
fn parse<T: for<'de> Deserialize<'de>>(
    connection: &Connection,
    parts: &[Part],
) -> Result<T, LiveError> {
    let bytes = parts.first().map_or(&[][..], |part| &part.bytes);
    serde_json::from_slice(bytes)
        .map_err(|error| LiveError::Garbled(connection.pid(), error.to_string()))
}
