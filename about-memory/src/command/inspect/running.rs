//! Reads the heap of a running process.

use std::fs;

use super::Found;
use crate::error::Failure;
use crate::glibc_heap::{self, Copied, Extent, Image, Process};
use crate::other_process::{Mapping, find_text, instead_of_glibc};
use crate::render::process::inspected::Inspected;

/// The most copies of a running process: a thread may have been stopped while it changed the heap.
const COPIES: usize = 10;

/// Copies and reads the heap, until a copy is whole.
pub(super) fn of_process(pid: u32, extent: Extent) -> Result<Found, Failure> {
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let program = program.map(|path| path.to_string_lossy().into_owned());
    let mut copies = 0;
    loop {
        let Copied { mut image, mappings, pause } = glibc_heap::copy(pid, extent)?;
        let other = || OtherAllocator::of(pid, program.as_deref(), &mappings);
        let Some(heap) = glibc_heap::read(&image) else {
            return Err(no_heap(pid, &mappings, other()).into());
        };
        copies += 1;
        if heap.notes.is_empty() || copies == COPIES {
            image.notes.extend(other().map(|other| other.missing_blocks(pid)));
            let copied = image.areas.size();
            let name = format!("process {pid}");
            let inspected = Inspected { name, heap, copied, pause: Some(pause) };
            return Ok(Found { inspected, image, process: Process { program, pid: Some(pid) } });
        }
    }
}

/// Copies the memory of a process that may refer to blocks, and finds the frames of its threads.
pub(super) fn image_of(pid: u32) -> Result<Image, Failure> {
    Ok(glibc_heap::copy(pid, Extent::Roots)?.image)
}

/// Names of libraries and of the allocators in them.
const ALLOCATORS: [(&str, &str); 3] =
    [("jemalloc", "jemalloc"), ("mimalloc", "mimalloc"), ("tcmalloc", "tcmalloc")];

/// Texts that linked-in allocators have, and the allocators.
const LINKED: [(&str, &str); 2] =
    [("<jemalloc>: ", "jemalloc"), ("mimalloc: warning: ", "mimalloc")];

/// A text that DMD has.
const OF_DMD: &str = "in the $DMD environment variable";

/// The crates and the types of allocators, and the allocators. DMD keeps the full name of the type
/// in a program where it is over one of them; apart, the two are not in this program.
const BELOW_DMD: [(&str, &str, &str); 3] = [
    ("tikv_jemallocator", "Jemalloc", "jemalloc"),
    ("mimalloc", "MiMalloc", "mimalloc"),
    ("snmalloc_rs", "SnMalloc", "snmalloc"),
];

/// An allocator beside glibc's, or in place of it.
#[derive(Clone, Copy)]
enum OtherAllocator {
    /// DMD is over it in the program.
    BelowDmd(&'static str),
    /// It is loaded or linked in.
    Present(&'static str),
}

impl OtherAllocator {
    /// Finds the allocator of a program.
    fn of(pid: u32, program: Option<&str>, mappings: &[Mapping]) -> Option<Self> {
        let program = mappings.iter().find(|mapping| Some(&*mapping.path) == program);
        let has_dmd = program.is_some_and(|program| find_text(pid, program, &[OF_DMD]).is_some());
        if let Some(name) = program.filter(|_| has_dmd).and_then(|it| allocator_below_dmd(pid, it))
        {
            return Some(Self::BelowDmd(name));
        }
        // A program with DMD may have an allocator linked in and not use it.
        let linked = || linked_allocator(pid, program.filter(|_| !has_dmd)?);
        library_allocator(mappings).or_else(linked).map(Self::Present)
    }

    /// Returns a sentence about blocks that are missing beside those of glibc's heap.
    fn missing_blocks(self, pid: u32) -> String {
        match self {
            Self::BelowDmd(name) => format!(
                "the program's own blocks are {name}'s, which are not here. {}",
                dmd_shows_them(pid)
            ),
            Self::Present(name) => format!(
                "the program has {name} too, whose blocks are not here: DMD over {name}, built into the program, shows them"
            ),
        }
    }
}

/// Returns the commands that show the blocks of a program with DMD.
fn dmd_shows_them(pid: u32) -> String {
    format!(
        "DMD shows them: run `about-memory track {pid} --mode=scan`, and later \
         `about-memory snapshot {pid} --dump --output heap.json.gz`"
    )
}

/// Returns the allocator that DMD is over in a program, if it is not the system's.
fn allocator_below_dmd(pid: u32, program: &Mapping) -> Option<&'static str> {
    let types = BELOW_DMD.map(|(of_crate, name, _)| format!("{of_crate}::{name}"));
    let found = find_text(pid, program, &types.each_ref().map(String::as_str))?;
    let place = types.iter().position(|name| name == found)?;
    BELOW_DMD.get(place).map(|(_, _, allocator)| *allocator)
}

/// Returns the allocator that is linked into a program without DMD.
fn linked_allocator(pid: u32, program: &Mapping) -> Option<&'static str> {
    let found = find_text(pid, program, &LINKED.map(|(text, _)| text))?;
    LINKED.iter().find(|(text, _)| *text == found).map(|(_, name)| *name)
}

fn library_allocator(mappings: &[Mapping]) -> Option<&'static str> {
    let has = |part: &str| mappings.iter().any(|mapping| mapping.file_name().contains(part));
    ALLOCATORS.iter().find(|(part, _)| has(part)).map(|(_, name)| *name)
}

/// Returns why a process has no heap that can be read.
fn no_heap(pid: u32, mappings: &[Mapping], other: Option<OtherAllocator>) -> String {
    let has = |part: &str| mappings.iter().any(|mapping| mapping.file_name().contains(part));
    let private: u64 = mappings
        .iter()
        .filter(|mapping| mapping.is_writable && mapping.inode == 0)
        .map(|mapping| mapping.range.end - mapping.range.start)
        .sum();
    let what = match other {
        Some(OtherAllocator::BelowDmd(name)) => {
            format!("its blocks are {name}'s. {}", dmd_shows_them(pid))
        }
        Some(OtherAllocator::Present(name)) => format!("its allocator is {name}"),
        None if has("libc.so.6") => "it has not allocated anything by glibc's malloc".to_owned(),
        None => instead_of_glibc(pid, mappings).to_owned(),
    };
    format!(
        "process {pid} has no heap of glibc's, which is what `inspect` can read: {what}. Its writable mappings without a file \
         have {private} bytes"
    )
}

#[cfg(test)]
mod tests {
    use super::{OtherAllocator, no_heap};
    use crate::other_process::Mapping;

    #[test]
    fn the_reason_why_there_is_no_heap_is_named() {
        let mapping = |path: &str, is_writable, inode| Mapping {
            range: 0x1000..0x3000,
            path: path.to_owned(),
            is_writable,
            inode,
            offset: 0,
        };
        // No process has this number, so that no program's file is looked at.
        let of = |path| {
            let mappings = [mapping(path, true, 9), mapping("", true, 0), mapping("", false, 0)];
            no_heap(0, &mappings, OtherAllocator::of(0, Some("/bin/static"), &mappings))
        };
        for (path, reason) in [
            ("/lib/libc.so.6", "it has not allocated anything by glibc's malloc"),
            ("/lib/libjemalloc.so.2", "its allocator is jemalloc"),
            ("/lib/ld-musl-x86_64.so.1", "its C library is musl, and only glibc's malloc is known"),
            ("/lib/libc-of-others.so.1", "its C library is not glibc"),
            ("/bin/static", "it is statically linked"),
        ] {
            let text = of(path);
            assert!(text.contains(&format!("can read: {reason}.")), "{text}");
            assert!(text.ends_with("have 8192 bytes"), "{text}");
        }
    }
}
