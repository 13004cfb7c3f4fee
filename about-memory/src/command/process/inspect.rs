//! `about-memory inspect PID|CORE`: the heap of a process that was not prepared.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::command::flags::Output;
use crate::context::Context;
use crate::error::{Failure, exit_code};
use crate::glibc_heap::{self, Copied, Extent, Heap, Image, Process, read_core, write_scan};
use crate::other_process::Mapping;
use crate::render::process::inspected::{Inspected, blocks, json, text};

/// `about-memory inspect`
#[derive(Debug, Args)]
#[command(after_help = "\
Works on any program with glibc's malloc (Linux, x86-64), and on its core files: nothing is loaded into it and nothing is \
changed. Its threads are stopped while the memory that describes the heap is copied.

The sums are exact: blocks in use, blocks that threads and arenas keep at hand, free ones by size, and the free ends of arenas. \
Who allocated a block is not known; of that, see `attach`.")]
pub struct InspectArgs {
    /// The number of a running process, or a core file
    #[arg(value_name = "PID|CORE")]
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

/// The most copies of a running process: a thread may have been stopped while it changed the heap.
const COPIES: usize = 10;

impl InspectArgs {
    /// Prints the sums of the heap.
    ///
    /// # Errors
    /// The process cannot be stopped or read, the file is no core file, there is no heap of
    /// glibc's, or the answer cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let extent = if self.save.is_some() { Extent::Contents } else { Extent::Sums };
        let pid = self.process.to_str().and_then(|text| text.parse().ok());
        let Found { inspected, image, process } = match pid {
            Some(pid) => of_process(pid, extent)?,
            None => of_core(&self.process, extent)?,
        };
        if let Some(file) = &self.save {
            save(file, &image, &inspected.heap, &process)?;
            writeln!(context.notes, "about-memory: wrote {}", file.display())?;
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
            writeln!(context.notes, "about-memory: {note}")?;
        }
        Ok(exit_code(inspected.heap.unknown > 0))
    }
}

/// A heap that was read, and the copy that it was read from.
struct Found {
    inspected: Inspected,
    image: Image,
    process: Process,
}

fn of_process(pid: u32, extent: Extent) -> Result<Found, Failure> {
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let program = program.map(|path| path.to_string_lossy().into_owned());
    let mut copies = 0;
    loop {
        let Copied { image, mappings, stopped } = glibc_heap::copy(pid, extent)?;
        let Some(heap) = glibc_heap::read(&image) else {
            return Err(no_heap(pid, &mappings).into());
        };
        copies += 1;
        if heap.notes.is_empty() || copies == COPIES {
            let copied = image.areas.size();
            let name = format!("process {pid}");
            let inspected = Inspected { name, heap, copied, stopped: Some(stopped) };
            return Ok(Found { inspected, image, process: Process { program, pid: Some(pid) } });
        }
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
    let process = Process { program: Some(name.clone()), pid: None };
    Ok(Found { inspected: Inspected { name, heap, copied, stopped: None }, image, process })
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

/// Names of libraries and of the allocators in them.
const ALLOCATORS: [(&str, &str); 4] = [
    ("jemalloc", "jemalloc"),
    ("mimalloc", "mimalloc"),
    ("tcmalloc", "tcmalloc"),
    ("musl", "musl's malloc"),
];

/// Returns why a process has no heap that can be read.
fn no_heap(pid: u32, mappings: &[Mapping]) -> String {
    let has = |part: &str| mappings.iter().any(|mapping| mapping.file_name().contains(part));
    let private: u64 = mappings
        .iter()
        .filter(|mapping| mapping.is_writable && mapping.inode == 0)
        .map(|mapping| mapping.range.end - mapping.range.start)
        .sum();
    let allocator = ALLOCATORS.iter().find(|(part, _)| has(part)).map(|(_, name)| *name);
    let what = match allocator {
        Some(name) => format!("its allocator is {name}"),
        None if has("libc.so.6") => "it has not allocated anything by glibc's malloc".to_owned(),
        None => "it is statically linked, or its C library is not glibc".to_owned(),
    };
    format!(
        "process {pid} has no heap of glibc's, which is what `inspect` can read: {what}. Its writable mappings without a file \
         have {private} bytes"
    )
}
