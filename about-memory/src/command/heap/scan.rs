//! Reads a scan: from a file, from the tracker of a running program, or from outside of one.

use crate::command::inspect;
use crate::error::Failure;
use crate::glibc_heap::Block;
use crate::input::dump::{DumpError, DumpReader};
use crate::input::live::{self, DEFAULT_TIMEOUT, Target};
use crate::input::open::{NamedBytes, may_be_program, running};
use memreport_analysis::read::{self, Dump, Mode, Thread, read_slice};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// A file with a scan, or a running program.
#[derive(Debug)]
pub(in crate::command) struct Scan<'a> {
    /// The file, or the number or the name of a process.
    pub(in crate::command) input: &'a Path,
    /// The longest wait for a running program.
    pub(in crate::command) timeout: Duration,
}

impl<'a> Scan<'a> {
    pub(in crate::command) fn new(input: &'a Path) -> Self {
        Scan { input, timeout: DEFAULT_TIMEOUT }
    }

    /// Reads and symbolicates the dump, or takes one of the running program.
    ///
    /// A program with a tracker in scan mode sends its scan; the words of its stacks are added. Any
    /// other is read from outside.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or the process cannot.
    pub(in crate::command) fn read(
        &self,
        reader: &mut DumpReader,
        notes: &mut dyn Write,
    ) -> Result<Dump, Failure> {
        let Some(target) = self.target()? else { return Ok(reader.read(self.input, notes)?) };
        let scan = self.by_tracker(&target)?;
        let pid = match target {
            Target::Pid(pid) => pid,
            Target::Name(_) | Target::Socket(_) => live::choose(&target, self.timeout)?.pid(),
        };
        if let Some(mut dump) = scan {
            if let Err(reason) = add_stacks(&mut dump, pid) {
                writeln!(notes, "note: without stacks: {reason}")?;
            }
            return Ok(reader.finish(dump, notes));
        }
        let bytes = inspect::scan_of(pid)?;
        let name = self.input.to_string_lossy();
        Ok(reader.read_bytes(NamedBytes { name: &name, bytes: &bytes }, notes)?)
    }

    /// Returns the running program, which needs no socket, if no file has its name.
    fn target(&self) -> Result<Option<Target>, Failure> {
        if let Some(target) = running(self.input) {
            return Ok(Some(target));
        }
        let name = self.input.to_str().filter(|name| may_be_program(name) && !self.input.exists());
        Ok(match name {
            Some(name) => {
                let pid = live::any_process(name);
                Some(Target::Pid(pid.map_err(|error| format!("no such file, and {error}"))?))
            }
            None => None,
        })
    }

    /// Returns the scan that the program's tracker sends, if it has one and is in this mode.
    fn by_tracker(&self, target: &Target) -> Result<Option<Dump>, Failure> {
        let Ok(program) = live::choose(target, self.timeout) else { return Ok(None) };
        // A program that does not track is read from outside.
        let Some(bytes) = program.report(true).ok().and_then(|report| report.dump) else {
            return Ok(None);
        };
        let read = read::read(&*bytes, read::DEFAULT_LIMIT);
        let dump = read.map_err(|error| DumpError::Read(self.input.into(), error))?;
        let is_scan = dump.invocation.mode == Mode::Scan;
        Ok(is_scan.then_some(dump))
    }
}

/// Replaces the words of stacks in the scan of a running program by those of stacks,
/// thread-locals and registers of all threads, with their frames. They are read a moment later.
fn add_stacks(dump: &mut Dump, pid: u32) -> Result<(), Failure> {
    let block = |block: read::Block<'_>| {
        Some(Block { address: block.addr.map(u64::from)?, usable: block.usable() })
    };
    let mut blocks: Vec<Block> = dump.blocks.iter().filter_map(block).collect();
    blocks.sort_unstable_by_key(|block| block.address);
    let bytes = inspect::roots_of(pid, &blocks)?;
    let outside = read_slice(&bytes).map_err(|error| error.to_string())?;
    let (Some(ours), Some(outside)) = (&mut dump.extension, outside.extension) else {
        return Ok(());
    };
    // The words of stacks that the tracker read are from another moment.
    ours.statics.retain(|word| word.place.is_static());
    ours.statics.extend(outside.statics.into_iter().filter(|word| !word.place.is_static()));
    ours.frames = outside.frames;
    for thread in outside.threads {
        match ours.threads.iter_mut().find(|known| known.tid == thread.tid) {
            Some(known) => known.pointer = thread.pointer,
            // Blocks refer to threads that the tracker knows.
            None => ours.threads.push(Thread { id: u32::MAX, ..thread }),
        }
    }
    Ok(())
}
