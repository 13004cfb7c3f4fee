//! Copies what describes the heap of a running process, while its threads are stopped.

use std::ops::Range;
use std::time::Duration;

use super::arenas::mapped_count;
use super::image::{Areas, Image, THREAD_LOCALS, words_of};
use super::mapped::{Search, find_mapped};
use super::places::Places;
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
    let word = |at: u64| Some(words_of(&process.read(at, 16).ok()?)?[0]);
    let mut image = Image::default();
    let mut places = Places::default();
    let mut library_end = None;
    for mapping in &mappings {
        let range = mapping.range.clone();
        if is_c_library(mapping.file_name()) {
            library_end = Some(range.end);
            if mapping.is_writable {
                places.add_library(range);
            }
        } else if !mapping.is_writable {
        } else if mapping.path == "[heap]" {
            image.heap = Some(range);
        } else if mapping.path.is_empty() && library_end == Some(range.start) {
            places.add_zeros(range);
        } else if mapping.path.is_empty() {
            places.add_private(range, word);
        }
    }
    let Places { library, arena_heaps, private } = places;
    for range in library.iter().chain(&arena_heaps).chain(&image.heap) {
        copy_range(&process, &mut image.areas, range.clone());
    }
    (image.library, image.arena_heaps) = (library, arena_heaps);
    find_all(&process, &mut image, &private);
    for registers in process.registers().into_values() {
        let pointer = registers.fs_base;
        copy_range(&process, &mut image.areas, pointer.saturating_sub(THREAD_LOCALS)..pointer);
        image.thread_pointers.push(pointer);
    }
    Ok(Copied { image, mappings, stopped: process.resume() })
}

/// Finds the chunks that are mappings of their own. Where glibc counts others than a near search
/// finds, all pages are searched.
fn find_all(process: &Stopped, image: &mut Image, private: &[Range<u64>]) {
    let words = |at: u64| words_of(&process.read(at, 16).ok()?);
    let counted = mapped_count(image);
    for search in [Search::Near, Search::Whole] {
        image.mapped.clear();
        for range in private {
            find_mapped(range.clone(), search, words, &mut image.mapped);
        }
        let bytes: u64 = image.mapped.iter().map(|(_, bytes)| bytes).sum();
        if counted.is_none_or(|counted| counted.bytes == bytes) {
            return;
        }
    }
}

/// Copies a range, as far as it can be read.
fn copy_range(process: &Stopped, areas: &mut Areas, range: Range<u64>) {
    let Ok(length) = usize::try_from(range.end - range.start) else { return };
    if let Ok(bytes) = process.read(range.start, length) {
        areas.add(range.start, bytes);
    }
}
