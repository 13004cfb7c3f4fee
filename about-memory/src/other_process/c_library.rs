//! Names what a program has instead of glibc.

use std::fs::File;

use object::read::ReadCache;
use object::{Object, ObjectSection};

use super::Mapping;

/// The sections that Go's linker writes, one of which is in every program of Go.
const OF_GO: [&str; 2] = [".go.buildinfo", ".note.go.buildid"];

/// The reason why nothing can be done with the heap of a program of Go, with the remedy.
pub(crate) const GO: &str = "it is a program of Go, statically linked, with an allocator of its own; Go's own profiler (net/http/pprof) shows its heap";

/// Returns whether the program in this file was linked by Go.
pub(crate) fn is_of_go(file: File) -> bool {
    let cache = ReadCache::new(file);
    let Ok(program) = object::File::parse(&cache) else { return false };
    program.sections().any(|section| section.name().is_ok_and(|name| OF_GO.contains(&name)))
}

/// Returns what a process without glibc has instead.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) fn instead_of_glibc(pid: u32, mappings: &[Mapping]) -> &'static str {
    let has = |part: &str| mappings.iter().any(|mapping| mapping.file_name().contains(part));
    // Distributions give the one file of musl either name.
    if has("ld-musl") || mappings.iter().any(|mapping| mapping.file_name() == "libc.so") {
        return "its C library is musl, and only glibc's malloc is known";
    }
    if File::open(format!("/proc/{pid}/exe")).is_ok_and(is_of_go) {
        return GO;
    }
    if has(".so") { "its C library is not glibc" } else { "it is statically linked" }
}
