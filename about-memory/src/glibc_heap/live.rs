//! Copies what describes the heap of a running process, while its threads are stopped.

use std::ops::Range;
use std::time::Duration;

use super::image::{ARENA_ALIGN, Areas, Image, THREAD_LOCALS};
use super::mapped::find_mapped;
use crate::other_process::{Mapping, ProcessError, Stopped, is_c_library, mappings, state};

/// A copy, and how long the process was stopped for it.
#[derive(Debug)]
pub(crate) struct Copied {
    pub(crate) image: Image,
    pub(crate) mappings: Vec<Mapping>,
    pub(crate) stopped: Duration,
}

/// Copies the heap of the process.
///
/// # Errors
///
/// The process has ended, or may not be traced.
pub(crate) fn copy(pid: u32) -> Result<Copied, ProcessError> {
    state(pid)?;
    let process = Stopped::stop(pid)?;
    let mappings = mappings(pid)?;
    let mut image = Image::default();
    let mut follows_library = false;
    for (index, mapping) in mappings.iter().enumerate() {
        let Range { start, end } = mapping.range;
        let is_adjacent = index > 0 && mappings[index - 1].range.end == start;
        let is_zeros = follows_library && is_adjacent && mapping.path.is_empty();
        let is_library = is_c_library(mapping.file_name()) || is_zeros;
        follows_library = is_library;
        if !mapping.is_writable {
            continue;
        }
        let is_heap = mapping.path == "[heap]";
        let is_arena = mapping.path.is_empty() && start % ARENA_ALIGN == 0;
        if is_library || is_heap || is_arena {
            copy_range(&process, &mut image.areas, start..end);
        }
        if is_library {
            image.library.push(start..end);
        } else if is_heap {
            image.heap = Some(start..end);
        } else if is_arena {
            image.arena_heaps.push(start..end);
        } else if mapping.path.is_empty() {
            find_mapped(start..end, |at| word(&process, at), &mut image.mapped);
        }
    }
    for registers in process.registers().into_values() {
        let pointer = registers.fs_base;
        copy_range(&process, &mut image.areas, pointer.saturating_sub(THREAD_LOCALS)..pointer);
        image.thread_pointers.push(pointer);
    }
    Ok(Copied { image, mappings, stopped: process.resume() })
}

fn word(process: &Stopped, address: u64) -> Option<u64> {
    Some(u64::from_le_bytes(process.read(address, 8).ok()?.try_into().ok()?))
}

/// Copies a range, as far as it can be read.
fn copy_range(process: &Stopped, areas: &mut Areas, range: Range<u64>) {
    let Ok(length) = usize::try_from(range.end - range.start) else { return };
    if let Ok(bytes) = process.read(range.start, length) {
        areas.add(range.start, bytes);
    }
}
