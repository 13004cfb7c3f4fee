//! `about-memory inspect PID|CORE`: the heap of a process that was not prepared.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod running;

use std::path::{Path, PathBuf, is_separator};
use std::process::ExitCode;

use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::command::flags::{Output, candidates, refuse_input};
use crate::context::Context;
use crate::error::{Failure, exit_code};
use crate::glibc_heap::{self, Block, Extent, Heap, Image, Process, read_core, write_scan};
use crate::input::live::any_process;
use crate::render::process::inspected::{Inspected, blocks, json, text};

/// `about-memory inspect`
#[derive(Debug, Args)]
#[command(after_help = "\
Works on any program with glibc's malloc (Linux, x86-64), and on its core files: nothing is loaded into it and nothing is \
changed. Its threads are stopped while the memory that describes the heap is copied; if there is much of it, only while one of \
them makes a copy-on-write child, which is read and ended.

The sums are exact: blocks in use, blocks that threads and arenas keep at hand, free ones by size, and the free ends of arenas. \
Who allocated a block is not known; of that, see `attach`.")]
pub struct InspectArgs {
    /// A running process, by pid or by the name of its program, or a core file
    #[arg(value_name = "PID|NAME|CORE", add = candidates::processes_and_files())]
    process: PathBuf,
    /// Also list the blocks in use: the address of each, and its bytes
    #[arg(long, conflicts_with = "json")]
    blocks: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Also write the blocks with their contents to this file, for `heap dominators` and `heap
    /// why-alive`; gzipped if the name ends in `.gz`. The process is stopped for longer
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

impl InspectArgs {
    /// Prints the sums of the heap.
    ///
    /// # Errors
    /// The process cannot be stopped or read, the file is no core file, there is no heap of
    /// glibc's, or the answer cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        if let Some(file) = &self.save {
            refuse_input(file, [&self.process])?;
        }
        let extent = if self.save.is_some() { Extent::Contents } else { Extent::Sums };
        let name = self
            .process
            .to_str()
            .filter(|name| !self.process.exists() && !name.contains(is_separator));
        let pid = name.map(any_process).transpose();
        let pid = pid.map_err(|error| format!("no such file, and {error}"))?;
        let Found { inspected, image, process } = match pid {
            Some(pid) => running::of_process(pid, extent)?,
            None => of_core(&self.process, extent)?,
        };
        if let Some(file) = &self.save {
            save(file, &image, &inspected.heap, &process)?;
            writeln!(context.notes, "note: wrote {}", file.display())?;
        }
        if self.json {
            json(&inspected, &mut context.out.json())?;
        } else {
            text(&inspected, &mut context.out)?;
        }
        if self.blocks {
            blocks(&inspected, &mut context.out)?;
        }
        for note in inspected.heap.notes.iter().chain(&image.notes) {
            writeln!(context.notes, "note: {note}")?;
        }
        Ok(exit_code(inspected.heap.unknown > 0))
    }
}

/// Returns a dump of a running process with the contents of all blocks.
///
/// # Errors
/// The process cannot be stopped or read, or there is no heap of glibc's.
pub(in crate::command) fn scan_of(pid: u32) -> Result<Vec<u8>, Failure> {
    let Found { inspected, image, process } = running::of_process(pid, Extent::Contents)?;
    let mut dump = Vec::new();
    write_scan(&image, &inspected.heap, &process, &mut dump)?;
    Ok(dump)
}

/// Returns a dump without blocks of a running process: the words outside of these blocks that lead
/// into them, its threads and their frames. The heap may be any allocator's.
///
/// # Errors
/// The process cannot be stopped or read.
pub(in crate::command) fn roots_of(pid: u32, blocks: &[Block]) -> Result<Vec<u8>, Failure> {
    Ok(glibc_heap::roots(&running::image_of(pid)?, blocks).to_string().into_bytes())
}

/// A heap that was read, and the copy that it was read from.
struct Found {
    inspected: Inspected,
    image: Image,
    process: Process,
}

/// There are no registers of other processors, and no such calls of other systems.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod running {
    use super::{Extent, Failure, Found, Image};

    const ELSEWHERE: &str =
        "running processes are inspected on Linux on x86-64 only; core files of one, anywhere";

    pub(super) fn of_process(_pid: u32, _extent: Extent) -> Result<Found, Failure> {
        Err(ELSEWHERE.into())
    }

    pub(super) fn image_of(_pid: u32) -> Result<Image, Failure> {
        Err(ELSEWHERE.into())
    }
}

fn of_core(path: &Path, extent: Extent) -> Result<Found, Failure> {
    let image = read_core(path, extent)?;
    let Some(heap) = glibc_heap::read(&image) else {
        let path = path.display();
        return Err(
            format!("{path}: has no heap of glibc's, which is what `inspect` can read").into()
        );
    };
    let (name, copied) = (path.display().to_string(), image.areas.size());
    let program = image.program.clone().unwrap_or_else(|| name.clone());
    let process = Process { program: Some(program), pid: None };
    Ok(Found { inspected: Inspected { name, heap, copied, pause: None }, image, process })
}

/// Writes a dump with the contents of all blocks.
fn save(file: &Path, image: &Image, heap: &Heap, process: &Process) -> Result<(), Failure> {
    let failed = |error| Failure::from(format!("{}: {error}", file.display()));
    let mut output = Output::create(file).map_err(failed)?;
    if file.extension().is_some_and(|extension| extension == "gz") {
        let mut packed = GzEncoder::new(output, Compression::fast());
        write_scan(image, heap, process, &mut packed).map_err(failed)?;
        output = packed.finish().map_err(failed)?;
    } else {
        write_scan(image, heap, process, &mut output).map_err(failed)?;
    }
    output.keep().map_err(failed)
}
