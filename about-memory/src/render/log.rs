//! Writes one allocation of a log, as text or as a line of JSON.

use std::io::{self, Write};

use memreport_analysis::analysis::{BlockType, commas, stack_as_read};
use memreport_analysis::read::{Block, Dump};
use serde_json::json;

/// An allocation with its thread, scopes, type and stack.
pub(crate) struct Entry<'d> {
    block: &'d Block,
    /// The time in microseconds since 1970.
    time: Option<u64>,
    /// The thread's tid and name.
    thread: (Option<u64>, Option<&'d str>),
    scopes: Vec<&'d str>,
    type_name: Option<String>,
    stack: Vec<String>,
}

impl<'d> Entry<'d> {
    pub(crate) fn new(dump: &'d Dump, block: &'d Block, time: Option<u64>) -> Self {
        let ours = dump.extension.as_ref();
        let thread = ours
            .and_then(|ours| ours.threads.iter().find(|thread| Some(thread.id) == block.thread));
        let type_name =
            block.alloc.and_then(|trace| match BlockType::of_trace(dump, dump.trace(trace)) {
                BlockType::Known(name) => Some(name),
                _ => None,
            });
        Entry {
            block,
            time,
            thread: (
                thread.and_then(|thread| thread.tid),
                thread.and_then(|thread| thread.name.as_deref()),
            ),
            scopes: ours.map(|ours| ours.scope_names(block.scope)).unwrap_or_default(),
            type_name,
            stack: block.alloc.map(|trace| stack_as_read(dump, trace)).unwrap_or_default(),
        }
    }

    /// Writes a line, and the first frames below it; 0 is all.
    pub(crate) fn write(&self, frames: usize, out: &mut dyn Write) -> io::Result<()> {
        let time = self.time.unwrap_or(0);
        let of_day = time / 1_000_000 % 86_400;
        let (hours, minutes, seconds) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        write!(out, "{hours:02}:{minutes:02}:{seconds:02}.{:06}Z", time % 1_000_000)?;
        write!(out, "  {} bytes", commas(self.block.req.into()))?;
        if let Some(name) = &self.type_name {
            write!(out, "  {name}")?;
        }
        match self.thread {
            (Some(id), Some(name)) => write!(out, "  thread {name} ({id})")?,
            (Some(id), None) => write!(out, "  thread {id}")?,
            _ => {}
        }
        if !self.scopes.is_empty() {
            write!(out, "  in {}", self.scopes.join(" > "))?;
        }
        writeln!(out)?;
        let most = if frames == 0 { usize::MAX } else { frames };
        for frame in self.stack.iter().take(most) {
            writeln!(out, "    {frame}")?;
        }
        Ok(())
    }

    pub(crate) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let line = json!({
            "timeUs": self.time,
            "requested": self.block.req,
            "usable": self.block.usable(),
            "weight": self.block.weight,
            "type": self.type_name,
            "tid": self.thread.0,
            "thread": self.thread.1,
            "scope": self.scopes,
            "stack": self.stack,
        });
        writeln!(out, "{line}")
    }
}

/// Writes the number of missing allocations.
pub(crate) fn write_lost(lost: u64, as_json: bool, out: &mut dyn Write) -> io::Result<()> {
    if as_json {
        return writeln!(out, "{}", json!({ "lost": lost }));
    }
    let were = if lost == 1 { "allocation is" } else { "allocations are" };
    writeln!(
        out,
        "… {} older {were} missing: they came faster than they were taken",
        commas(lost.into())
    )
}
