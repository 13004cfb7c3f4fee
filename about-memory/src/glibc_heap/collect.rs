//! Copies what describes a heap, and on request the contents of its blocks, from a stopped process
//! or a core file.

mod places;

use std::ops::Range;
use std::time::Duration;

use memreport_analysis::read::StaticPlace;

use self::places::Places;
use super::arenas::{main_top, mapped_count};
use super::image::{Areas, Image, PAGE, Root, THREAD_LOCALS, words_of};
use super::mapped::{Search, find_mapped};
use super::threads::{RED_ZONE, ThreadState};
use crate::other_process::{Mapping, is_c_library};

/// Memory that can be read.
pub(super) trait Memory {
    /// Reads a range, as far as it can be read from its start on.
    fn read(&self, range: Range<u64>) -> Vec<u8>;

    /// The extent of the first search for mapped chunks.
    fn search(&self) -> Search;
}

/// The extent of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All that the sums need.
    Sums,
    /// The memory that may refer to blocks: data of modules, stacks, and some more. No heap.
    Roots,
    /// The contents of all blocks too, and the memory that may refer to them.
    Contents,
}

/// The time for which the process was kept from its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) time: Duration,
    /// It went on while a child with its memory was copied.
    pub(crate) is_by_child: bool,
}

/// The kernel's name of the memory that `brk` gives.
const HEAP: &str = "[heap]";

/// The bytes above a thread pointer that are the C library's (`struct pthread`).
const THREAD_DESCRIPTION: u64 = 2304;

/// The most bytes of memory beside the heap that are searched for addresses.
const MOST_OTHER: u64 = 1 << 30;

/// The same where the heap is another allocator's, and so is among that memory.
const MOST_WITH_HEAP: u64 = 64 << 20;

/// Copies an image.
pub(super) fn collect(
    memory: &impl Memory,
    mappings: &[Mapping],
    threads: &[ThreadState],
    extent: Extent,
) -> Image {
    let places = sort(memory, mappings);
    let mut image = Image {
        library: places.library,
        arena_heaps: places.arena_heaps,
        thread_pointers: threads.iter().map(|thread| thread.thread_pointer).collect(),
        ..Image::default()
    };
    if extent == Extent::Roots {
        add_roots(memory, &mut image, (mappings, threads), (&places.private, MOST_WITH_HEAP));
        return image;
    }
    for range in image.library.iter().chain(&image.arena_heaps) {
        copy(memory, &mut image.areas, range.clone());
    }
    // The main arena's row is the range that its end is in.
    let top = main_top(&image);
    let mut private = places.private;
    if let Some(at) = private.iter().position(|range| top.is_some_and(|top| range.contains(&top))) {
        let heap = private.swap_remove(at);
        copy(memory, &mut image.areas, heap.clone());
        image.heap = Some(heap);
    }
    find_all(memory, &mut image, &private);
    if extent == Extent::Contents {
        for (start, bytes) in image.mapped.clone() {
            copy(memory, &mut image.areas, start..start + bytes);
        }
        add_roots(memory, &mut image, (mappings, threads), (&private, MOST_OTHER));
    }
    for thread in threads {
        let pointer = thread.thread_pointer;
        copy(memory, &mut image.areas, pointer.saturating_sub(THREAD_LOCALS)..pointer);
    }
    image
}

/// Joins neighbouring pieces of `[heap]`: a fork may leave several.
fn joined(mappings: &[Mapping]) -> Vec<Mapping> {
    let mut joined: Vec<Mapping> = Vec::with_capacity(mappings.len());
    for mapping in mappings {
        match joined.last_mut() {
            Some(last)
                if mapping.path == HEAP
                    && last.path == HEAP
                    && last.range.end == mapping.range.start =>
            {
                last.range.end = mapping.range.end;
            }
            _ => joined.push(mapping.clone()),
        }
    }
    joined
}

/// Sorts the writable mappings by what they may hold.
fn sort(memory: &impl Memory, mappings: &[Mapping]) -> Places {
    let word = |at: u64| Some(words_of(&memory.read(at..at + 16))?[0]);
    let mut places = Places::default();
    let mut library_end = None;
    for mapping in joined(mappings) {
        let range = mapping.range.clone();
        let is_private = mapping.path.is_empty() || mapping.path == HEAP;
        if is_c_library(mapping.file_name()) {
            library_end = Some(range.end);
            if mapping.is_writable {
                places.add_library(range);
            }
        } else if mapping.is_writable && is_private {
            if library_end == Some(range.start) {
                places.add_zeros(range);
            } else {
                places.add_private(range, word);
            }
        }
    }
    places
}

/// Finds the chunks that are mappings of their own. Where glibc counts others than a near search
/// finds, all pages are searched.
fn find_all(memory: &impl Memory, image: &mut Image, private: &[Range<u64>]) {
    let words = |at: u64| words_of(&memory.read(at..at + 16));
    let counted = mapped_count(image);
    for search in [memory.search(), Search::Whole] {
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
fn copy(memory: &impl Memory, areas: &mut Areas, range: Range<u64>) {
    let bytes = memory.read(range.clone());
    areas.add(range.start, bytes);
}

/// Adds the memory outside the heap that may refer to blocks: of memory of no known use, at most
/// `most` bytes.
fn add_roots(
    memory: &impl Memory,
    image: &mut Image,
    (mappings, threads): (&[Mapping], &[ThreadState]),
    (private, most): (&[Range<u64>], u64),
) {
    let mut covered: Vec<Range<u64>> =
        image.mapped.iter().map(|(at, size)| *at..at + size).collect();
    for thread in threads {
        let ThreadState { number, thread_pointer, .. } = thread;
        let stack_pointer = thread.stack_pointer();
        let name = format!("stack and thread-locals of thread {number}");
        image.threads.push(thread.clone());
        let holds = |mapping: &&Mapping| mapping.range.contains(&stack_pointer);
        let Some(mapping) = mappings.iter().find(holds) else { continue };
        // The thread-locals are at the end of a thread's stack, but not of the main thread's.
        let locals = thread_pointer.saturating_sub(THREAD_LOCALS)
            ..thread_pointer.saturating_add(THREAD_DESCRIPTION);
        let start = stack_pointer.saturating_sub(RED_ZONE).max(mapping.range.start);
        let is_last = mapping.range.contains(thread_pointer);
        let end = if is_last { locals.end.min(mapping.range.end) } else { mapping.range.end };
        covered.push(mapping.range.start..end);
        add_root(memory, image, Root::named(&name, start..end));
        if !is_last {
            add_root(memory, image, Root::named(&name, locals));
        }
    }
    let mut left = most;
    for (index, mapping) in mappings.iter().enumerate().filter(|(_, mapping)| mapping.is_writable) {
        let before = mappings[..index].iter().rev().find(|before| before.inode != 0);
        let follows = |before: &&Mapping| before.range.end == mapping.range.start;
        let file = if mapping.inode != 0 {
            Some(mapping)
        } else {
            before.filter(|before| mapping.path.is_empty() && follows(before))
        };
        let Some(file) = file.filter(|file| file.path.starts_with('/')) else { continue };
        let first = mappings.iter().find(|first| first.path == file.path);
        let base = first.map_or(0, |first| first.range.start);
        let root =
            Root { name: None, module: file.path.clone(), base, range: mapping.range.clone() };
        add_root(memory, image, root);
        covered.push(mapping.range.clone());
    }
    covered.sort_by_key(|range| range.start);
    for range in private {
        let mut start = range.start;
        for taken in
            covered.iter().filter(|taken| taken.start < range.end && range.start < taken.end)
        {
            if start < taken.start {
                left = add_other(memory, image, start..taken.start, left);
            }
            start = start.max(taken.end);
        }
        if start < range.end {
            left = add_other(memory, image, start..range.end, left);
        }
    }
}

/// Adds memory of no known use. Returns how many more bytes may be added.
fn add_other(memory: &impl Memory, image: &mut Image, range: Range<u64>, left: u64) -> u64 {
    let bytes = range.end - range.start;
    if bytes > left {
        image.notes.push(format!(
            "{bytes} bytes from {:x} on are not searched for addresses of blocks: there is too much beside the heap",
            range.start
        ));
        return left;
    }
    add_root(memory, image, Root::named(StaticPlace::OTHER_MEMORY, range));
    left - bytes
}

fn add_root(memory: &impl Memory, image: &mut Image, root: Root) {
    let start = root.range.start.next_multiple_of(8);
    if root.range.end > start && root.range.end - start < MOST_OTHER + PAGE {
        let bytes = memory.read(start..root.range.end);
        image.roots.push((Root { range: start..start + bytes.len() as u64, ..root }, bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::other_process::parse;

    #[test]
    fn pieces_of_the_heap_are_one() {
        let lines = "\
1000-2000 rw-p 00000000 00:00 0 [heap]
2000-5000 rw-p 00000000 00:00 0 [heap]
5000-6000 rw-p 00000000 00:00 0
7000-8000 rw-p 00000000 00:00 0 [heap]
8000-9000 r--p 00000000 fe:00 7 /lib/x";
        let mappings: Vec<_> = lines.lines().filter_map(parse).collect();
        let joined: Vec<_> = joined(&mappings).into_iter().map(|joined| joined.range).collect();
        assert_eq!(joined, [0x1000..0x5000, 0x5000..0x6000, 0x7000..0x8000, 0x8000..0x9000]);
    }
}
