//! Finds the stacks of this process's threads, and the resident bytes of each.
//!
//! No file lists them. The kernel names the main thread's stack. The C library keeps a thread's
//! descriptor at the outer end of its stack, and a thread that has allocated records its address.
//! For a thread that sleeps in the kernel, the kernel reports the stack pointer. The descriptor
//! also separates a stack, page by page, from memory that the kernel merged into the same mapping.

use std::fs;
use std::ops::Range;

use super::bytes;
use super::figures::page_size;
use super::smaps::Mapping;
use crate::allocator::counters::descriptor_of;
use crate::report::Report;
use crate::report::reporter::Gathered;

/// The most bytes that the C library keeps at the outer end of a stack, from the descriptor on.
const DESCRIPTOR: u64 = 4096;

/// The largest mapping that is taken for a stack if only the stack pointer is known. A larger one
/// may hold other memory.
const LARGEST_UNBOUNDED: u64 = 8 << 20;

/// The most threads that are reported one by one. The rest is one report.
const LISTED: usize = 100;

/// The stack of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stack {
    name: String,
    thread: u64,
    rss: u64,
    pss: u64,
}

/// The stacks that were found.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    stacks: Vec<Stack>,
    /// The number of threads whose stack was not found.
    unknown: usize,
}

/// Finds all stacks, and subtracts their bytes from the mappings.
pub(super) fn find(mappings: &mut [Mapping]) -> Stacks {
    let mut stacks = Stacks::default();
    let here = std::ptr::from_ref(&stacks).addr() as u64;
    let myself = fs::read_link("/proc/thread-self").ok();
    let myself = myself.as_deref().and_then(|path| path.file_name()?.to_str()?.parse().ok());
    for thread in threads() {
        let place =
            if thread == u64::from(std::process::id()) { Place::of_main(mappings) } else { None };
        let pointer = || if Some(thread) == myself { Some(here) } else { stack_pointer(thread) };
        let place = place
            .or_else(|| Place::by_descriptor(descriptor_of(thread)? as u64, mappings))
            .or_else(|| Place::by_pointer(pointer()?, mappings));
        let Some(Place { mapping, extent }) = place else {
            stacks.unknown += 1;
            continue;
        };
        let mapping = &mut mappings[mapping];
        let (rss, pss) = mapping.take(resident(&extent).unwrap_or(extent.end - extent.start));
        stacks.stacks.push(Stack { name: name(thread), thread, rss, pss });
    }
    stacks.stacks.sort_by_key(|stack| (std::cmp::Reverse(stack.rss), stack.thread));
    stacks
}

/// The location of a stack: the index of its mapping, and its addresses.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    mapping: usize,
    extent: Range<u64>,
}

impl Place {
    fn of_main(mappings: &[Mapping]) -> Option<Place> {
        let mapping = mappings.iter().position(|mapping| mapping.name == "[stack]")?;
        Some(Place { mapping, extent: mappings[mapping].addresses.clone() })
    }

    /// Returns the memory from the inner end of the mapping to the end of the descriptor's pages.
    fn by_descriptor(descriptor: u64, mappings: &[Mapping]) -> Option<Place> {
        let (index, mapping) = holding(descriptor, mappings)?;
        let page = page_size();
        let behind = (descriptor + DESCRIPTOR).div_ceil(page) * page;
        let end = behind.min(mapping.addresses.end);
        Some(Place { mapping: index, extent: mapping.addresses.start..end })
    }

    /// Returns the whole mapping, if an unreadable page guards its inner end.
    fn by_pointer(pointer: u64, mappings: &[Mapping]) -> Option<Place> {
        let (index, mapping) = holding(pointer, mappings)?;
        let guard = mappings.get(index.checked_sub(1)?)?;
        let is_guarded =
            guard.permissions.starts_with("---") && guard.addresses.end == mapping.addresses.start;
        let is_usual = mapping.addresses.end - mapping.addresses.start <= LARGEST_UNBOUNDED;
        (is_guarded && is_usual)
            .then(|| Place { mapping: index, extent: mapping.addresses.clone() })
    }
}

/// Returns the anonymous mapping that contains an address, and its index. The list is in order of
/// addresses.
fn holding(address: u64, mappings: &[Mapping]) -> Option<(usize, &Mapping)> {
    let index = mappings.partition_point(|mapping| mapping.addresses.end <= address);
    let mapping = mappings.get(index)?;
    let is_anonymous = mapping.name.is_empty() || mapping.name.starts_with("[anon:");
    let can_be = mapping.addresses.contains(&address)
        && mapping.permissions.starts_with("rw")
        && mapping.permissions.ends_with('p')
        && is_anonymous;
    can_be.then_some((index, mapping))
}

/// Counts the bytes of these addresses in physical memory, page by page.
#[cfg(target_os = "linux")]
fn resident(extent: &Range<u64>) -> Option<u64> {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    const ENTRY: u64 = 8;
    /// The highest bit of an entry: the page is present.
    const PRESENT: u8 = 0x80;

    let file = File::open("/proc/self/pagemap").ok()?;
    let page = page_size();
    let (mut at, end) = (extent.start / page * ENTRY, extent.end / page * ENTRY);
    let mut buffer = [0_u8; 1 << 14];
    let mut present = 0;
    while at < end {
        let wanted = usize::try_from(end - at).unwrap_or(usize::MAX).min(buffer.len());
        let read = file.read_at(&mut buffer[..wanted], at).ok().filter(|read| *read >= 8)?;
        // The kernel copies whole entries.
        let entries = buffer[..read].chunks_exact(8);
        present += entries.filter(|entry| entry[7] & PRESENT != 0).count() as u64;
        at += read as u64;
    }
    Some(present * page)
}

#[cfg(not(target_os = "linux"))]
fn resident(_extent: &Range<u64>) -> Option<u64> {
    None
}

/// Returns the kernel's numbers of all threads.
fn threads() -> Vec<u64> {
    let entries = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the stack pointer of a thread that waits in the kernel: the last word but one of its
/// `syscall` file. A running thread has none.
fn stack_pointer(thread: u64) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/syscall")).ok()?;
    let mut words = text.split_ascii_whitespace().rev().skip(1);
    u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()
}

fn name(thread: u64) -> String {
    let name = fs::read_to_string(format!("/proc/self/task/{thread}/comm")).unwrap_or_default();
    name.trim_end().replace('/', "\\")
}

impl Stacks {
    /// Returns the resident bytes of all stacks, and those bytes less the shares of other
    /// processes.
    pub(super) fn resident(&self) -> (u64, u64) {
        self.stacks.iter().fold((0, 0), |sum, stack| (sum.0 + stack.rss, sum.1 + stack.pss))
    }

    pub(super) fn report(&self, gathered: &mut Gathered) {
        let description = "The part of the thread's stack that is in physical memory. From /proc/self/smaps and pagemap.";
        for Stack { name, thread, rss, .. } in self.stacks.iter().take(LISTED) {
            let path = format!("explicit/thread-stacks/{name} (tid={thread})");
            gathered.reports.push(Report::non_heap(path, bytes(*rss), description));
        }
        if let Some(rest) = self.stacks.get(LISTED..).filter(|rest| !rest.is_empty()) {
            let path = format!("explicit/thread-stacks/({} more threads)", rest.len());
            let sum = rest.iter().map(|stack| stack.rss).sum();
            gathered.reports.push(Report::non_heap(path, bytes(sum), description));
        }
        let number = bytes((self.stacks.len() + self.unknown) as u64);
        gathered.reports.push(Report::count("threads", number, "Threads of the process."));
        if self.unknown > 0 {
            gathered.notes.push(format!(
                "explicit/thread-stacks: the stacks of {} of {number} threads were not found; they are in rss/anonymous",
                self.unknown
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(addresses: Range<u64>, permissions: &str) -> Mapping {
        Mapping { addresses, permissions: permissions.to_owned(), ..Mapping::default() }
    }

    #[test]
    fn other_memory_in_the_same_mapping_is_no_stack() {
        let mappings = [mapping(0..0x1000, "---p"), mapping(0x1000..0x9_0000, "rw-p")];
        let place = |extent| Some(Place { mapping: 1, extent });
        assert_eq!(Place::by_descriptor(0x4_0700, &mappings), place(0x1000..0x4_2000));
        assert_eq!(Place::by_descriptor(0x8_f700, &mappings), place(0x1000..0x9_0000));
        assert_eq!(Place::by_pointer(0x5000, &mappings), place(0x1000..0x9_0000));
        assert_eq!(Place::by_pointer(0x500, &mappings), None);
        assert_eq!(Place::by_pointer(0x5000, &mappings[1..]), None, "nothing guards it");
        for (bytes, is_stack) in [(LARGEST_UNBOUNDED, true), (LARGEST_UNBOUNDED + 0x1000, false)] {
            let large = [mapping(0..0x1000, "---p"), mapping(0x1000..0x1000 + bytes, "rw-p")];
            assert_eq!(Place::by_pointer(0x5000, &large).is_some(), is_stack, "{bytes}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn pages_that_are_used_are_resident() {
        let page = usize::try_from(page_size()).unwrap();
        // More pages than one call reads.
        let memory = vec![1_u8; 3000 * page];
        let start = memory.as_ptr().addr().next_multiple_of(page) as u64;
        for pages in [0, 1, 7, 2048, 2049, 2999] {
            let bytes = pages * page as u64;
            assert_eq!(resident(&(start..start + bytes)), Some(bytes), "{pages} pages");
        }
        assert_eq!(std::hint::black_box(&memory)[page], 1);
    }

    #[test]
    fn the_smallest_stacks_are_one_report() {
        let stacks = |number: u64| Stacks {
            stacks: (0..number)
                .map(|thread| Stack { name: "worker".to_owned(), thread, rss: 8192, pss: 4096 })
                .collect(),
            unknown: 2,
        };
        for (number, listed, rest) in [(1, 1, None), (100, 100, None), (103, 100, Some(3 * 8192))] {
            let mut gathered = Gathered::default();
            stacks(number).report(&mut gathered);
            let amount = |path: &str| {
                let mut reports = gathered.reports.iter();
                reports.find(|report| report.path == path).map(|report| report.amount)
            };
            let is_listed = |report: &&Report| report.path.contains("worker (tid=");
            assert_eq!(gathered.reports.iter().filter(is_listed).count(), listed);
            assert_eq!(amount("explicit/thread-stacks/(3 more threads)"), rest);
            assert_eq!(amount("threads"), Some(bytes(number + 2)));
            assert_eq!(stacks(number).resident(), (number * 8192, number * 4096));
            assert!(gathered.notes[0].contains("the stacks of 2 of"), "{:?}", gathered.notes);
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_stack_that_is_used_is_found_to_be_used() {
        /// Touches this much of the stack, and sleeps until the barrier opens.
        fn deep(used: &std::sync::Barrier, end: &std::sync::Barrier) {
            let room = std::hint::black_box([1_u8; 256 << 10]);
            used.wait();
            end.wait();
            assert_eq!(std::hint::black_box(&room)[4096], 1);
        }
        let (used, end) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            let builder = std::thread::Builder::new().name("deep/stack".to_owned());
            let thread = builder.spawn_scoped(scope, || deep(&used, &end)).unwrap();
            used.wait();
            let deep = (0..100_000).find_map(|_| {
                let mut mappings = super::super::smaps::read()?;
                let before: u64 = mappings.iter().map(|mapping| mapping.rss).sum();
                let stacks = find(&mut mappings);
                let after: u64 = mappings.iter().map(|mapping| mapping.rss).sum();
                assert_eq!(before - after, stacks.resident().0);
                // A thread on its way to sleep has no stack pointer yet. No allocator is declared
                // here, so only the kernel provides one.
                stacks.stacks.into_iter().find(|stack| stack.name == "deep\\stack")
            });
            end.wait();
            thread.join().unwrap();
            let deep = deep.expect("a thread that sleeps is found");
            assert!((256 << 10..2 << 20).contains(&deep.rss), "{deep:?}");
        });
    }
}
