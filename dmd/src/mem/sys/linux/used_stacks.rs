//! The parts of stacks that threads use, by `/proc/self/task/N/syscall` and `/proc/self/maps`.

use std::fs;

use super::threads;
use crate::mem::sys::stacks::{StackBounds, UsedStack, UsedStacks};

/// Returns the used stacks of all threads: of this one, from its stack pointer on.
pub(super) fn used_stacks(stack_pointer: usize) -> UsedStacks {
    let mut stacks = UsedStacks::default();
    let Ok(maps) = fs::read_to_string("/proc/self/maps") else { return stacks };
    stacks.mappings = maps.lines().filter_map(mapping).collect();
    let own = threads::id();
    for task in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let Some(thread) = task.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let waiting = || waiting(&fs::read_to_string(task.path().join("syscall")).ok()?);
        let low = if thread == own { Some(stack_pointer) } else { waiting() };
        let Some(low) = low else {
            stacks.unknown.push(thread);
            continue;
        };
        let bounds = stacks.around(low).map(|StackBounds { high, .. }| StackBounds { low, high });
        stacks.known.extend(bounds.map(|bounds| UsedStack { thread, bounds }));
    }
    stacks
}

/// Returns the range of a line of `maps`.
fn mapping(line: &str) -> Option<StackBounds> {
    let (low, rest) = line.split_once('-')?;
    let high = rest.split(' ').next()?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some(StackBounds { low: address(low)?, high: address(high)? })
}

/// Returns the stack pointer of a thread that waits in the kernel, the last but one of the numbers
/// in its `syscall` (proc(5)); `None` if the thread runs, or has ended.
fn waiting(syscall: &str) -> Option<usize> {
    let pointer = syscall.trim_end().rsplit(' ').nth(1)?;
    usize::from_str_radix(pointer.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let call = "202 0x55d0 0x80 0x2 0x0 0x0 0x0 0x7ffc12345678 0x7f0011112222\n";
        assert_eq!(waiting(call), Some(0x7ffc_1234_5678));
        assert_eq!(waiting("-1 0x7ffc12345678 0x7f0011112222\n"), Some(0x7ffc_1234_5678));
        assert_eq!(["running\n", "", "1 2 3"].map(waiting), [None; 3]);
        let line = "7ffc1000-7ffc3000 rw-p 00000000 00:00 0     [stack]";
        let found = mapping(line).map(|StackBounds { low, high }| (low, high));
        assert_eq!(found, Some((0x7ffc_1000, 0x7ffc_3000)));
        assert!(mapping("what").is_none());
    }

    #[test]
    fn stacks_of_waiting_threads_and_of_this_one_are_found() {
        let (at, place) = mpsc::channel();
        let (end, wait) = mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            let local = 0_usize;
            at.send((threads::id(), (&raw const local).addr())).expect("it is received");
            let _ = wait.recv();
        });
        let (thread, local) = place.recv().expect("it is sent");
        let here = 0_usize;
        let own = (&raw const here).addr();
        let has = |stacks: &UsedStacks, thread: u32, address: usize| {
            stacks.known.iter().any(|stack| {
                let StackBounds { low, high } = stack.bounds;
                stack.thread == thread && (low..high).contains(&address)
            })
        };
        // The other thread may not wait yet.
        let found = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            let stacks = used_stacks(own);
            has(&stacks, threads::id(), own) && has(&stacks, thread, local)
        });
        assert!(found);
        drop(end);
        other.join().expect("it ends");
    }
}
