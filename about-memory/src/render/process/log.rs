//! Writes one allocation of a log, as text or as a line of JSON.

use std::io::{self, Write};

use memreport_analysis::analysis::{BlockType, commas, stack_as_read};
use memreport_analysis::read::{Block, Dump};
use serde_json::json;

/// An allocation with its thread, scopes, type and stack.
pub(crate) struct Entry<'d> {
    block: Block<'d>,
    /// The time in microseconds since 1970.
    time: Option<u64>,
    /// The thread's tid and name.
    thread: (Option<u64>, Option<&'d str>),
    scopes: Vec<&'d str>,
    type_name: Option<String>,
    stack: Vec<String>,
}

impl<'d> Entry<'d> {
    pub(crate) fn new(dump: &'d Dump, block: Block<'d>, time: Option<u64>) -> Self {
        let ours = dump.extension.as_ref();
        let thread = ours.and_then(|ours| {
            ours.threads.iter().find(|thread| Some(thread.id) == block.kind.thread)
        });
        let type_name =
            block.kind.alloc.and_then(|trace| match BlockType::of_trace(dump, dump.trace(trace)) {
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
            scopes: ours.map(|ours| ours.scope_names(block.kind.scope)).unwrap_or_default(),
            type_name,
            stack: block.kind.alloc.map(|trace| stack_as_read(dump, trace)).unwrap_or_default(),
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
            "weight": self.block.kind.weight,
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

#[cfg(test)]
mod tests {
    use memreport_analysis::read::read_slice;

    use super::*;

    const DUMP: &str = r##"{"version":5,"invocation":{"dmdEnvVar":null,"mode":"live"},
        "blockList":[{"req":4000,"slop":8,"alloc":"A","thread":1,"scope":2,"weight":2.5},
            {"req":8,"thread":2},{"req":9,"thread":7}],
        "memreport":{"version":1,"scopes":[[0,"request"],[1,"search"]],
            "threads":[{"id":1,"tid":70,"name":"main"},{"id":2,"tid":71}]},
        "traceTable":{"A":["a","v","l","m"]},"frameTable":{"a":"#00: __rust_alloc",
            "v":"#00: alloc::vec::push","l":"#00: shop::load (src/main.rs:3)",
            "m":"#00: shop::main (src/main.rs:9)"}}"##;

    /// Returns the entry of a block as text, with at most so many frames, and as JSON.
    fn written(block: usize, time: Option<u64>, frames: usize) -> [String; 2] {
        let dump = read_slice(DUMP.as_bytes()).expect("it is a dump");
        let entry = Entry::new(&dump, dump.blocks.at(block), time);
        let (mut text, mut json) = (Vec::new(), Vec::new());
        entry.write(frames, &mut text).expect("it is memory");
        entry.write_json(&mut json).expect("it is memory");
        [text, json].map(|bytes| String::from_utf8(bytes).expect("it is text"))
    }

    #[test]
    fn an_entry_has_what_is_known_of_an_allocation() {
        // A day, 13 hours, 5 minutes, 59 seconds and 42 microseconds after the epoch.
        let time = Some(((24 + 13) * 3600 + 5 * 60 + 59) * 1_000_000 + 42);
        let line = "13:05:59.000042Z  4,000 bytes  thread main (70)  in request > search\n";
        let [load, main] = ["    shop::load (src/main.rs:3)\n", "    shop::main (src/main.rs:9)\n"];
        let [all, json] = written(0, time, 0);
        assert_eq!(all, format!("{line}{load}{main}"));
        assert_eq!(written(0, time, 1)[0], format!("{line}{load}"));
        let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
        let expected = json!({
            "timeUs": 133_559_000_042_u64, "requested": 4000, "usable": 4008, "weight": 2.5,
            "type": null, "tid": 70, "thread": "main", "scope": ["request", "search"],
            "stack": ["shop::load (src/main.rs:3)", "shop::main (src/main.rs:9)"],
        });
        assert_eq!(json, expected);
        assert_eq!(written(1, None, 0)[0], "00:00:00.000000Z  8 bytes  thread 71\n");
        assert_eq!(written(2, None, 0)[0], "00:00:00.000000Z  9 bytes\n");
    }

    #[test]
    fn missing_allocations_are_counted() {
        let lost = |lost, as_json| {
            let mut out = Vec::new();
            write_lost(lost, as_json, &mut out).expect("it is memory");
            String::from_utf8(out).expect("it is text")
        };
        let late = "missing: they came faster than they were taken\n";
        assert_eq!(lost(1, false), format!("… 1 older allocation is {late}"));
        assert_eq!(lost(2000, false), format!("… 2,000 older allocations are {late}"));
        assert_eq!(lost(2000, true), "{\"lost\":2000}\n");
    }
}
