//! Reads glibc's heap in a copy of a process's memory: `malloc/malloc.c` and `malloc/arena.c` of
//! glibc 2.27 and later.
//!
//! A *chunk* is a block with the word of its size before it. The heap is a row of chunks for each
//! arena, up to the arena's *top*, which is free. A chunk is free if it is in a bin, or at hand for
//! its thread (*cached*) or its arena (*fast*); the flags of the chunks tell only the first.
//!
//! Everything is read from a copy ([`Image`]) that may be damaged or hostile: each structure is
//! checked before it is used, and each walk has an end. `arenas` finds the arenas, `caches` the
//! chunks at hand, `walk` goes over the rows; `live` and `core_file` take the copy, in which
//! `frames` finds the functions of threads; `scan` writes it as a dump.

mod threads;
mod image;
mod arenas;
mod caches;
mod walk;
mod mapped;
mod collect;
mod frames;
mod scan;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod live;
mod core_file;

#[cfg(test)]
mod tests;

pub(crate) use collect::{Extent, Pause};
pub(crate) use core_file::read_core;
pub(crate) use image::Image;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) use live::{Copied, copy};
pub(crate) use scan::{Process, roots, write_scan};
pub(crate) use walk::{Block, Heap, Sum, read};
