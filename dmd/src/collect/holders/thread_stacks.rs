//! Stacks of threads, for scans: the words that lead to blocks, and the frames of this thread.
//!
//! Only the kernel knows the stack pointer of another thread, and tells it of threads that wait. To
//! stop the others by signals would change the program. Registers are not read.

use super::StaticWord;
use super::words::each_word;
use crate::mem::pages::PageList;
use crate::mem::sys::{self, StackBounds, UsedStack, UsedStacks};
use crate::stack::thread::{self, RegisteredThread};
use crate::stack::walk::{self, Frames, Registers};
use crate::table::BLOCKS;
use crate::table::blocks::Granule;

/// The stacks of a scan.
#[derive(Debug)]
pub(crate) struct ThreadStacks {
    /// The words that lead to blocks, or have the handle of a thread.
    pub(crate) words: PageList<StackWord>,
    /// The frames of the thread that makes the scan.
    pub(crate) frames: Frames,
    /// The kernel's number of that thread.
    pub(crate) thread: u32,
    /// The number of threads of the program that ran, whose stacks are not in the scan.
    pub(crate) unknown: usize,
}

/// A word of a stack, or of the thread-local storage behind it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackWord {
    /// The kernel's number of the thread.
    pub(crate) thread: u32,
    pub(crate) word: StaticWord,
}

impl ThreadStacks {
    pub(in crate::collect) const fn empty() -> Self {
        let frames = Frames { registers: Vec::new(), is_whole: false };
        ThreadStacks { words: PageList::new(), frames, thread: 0, unknown: 0 }
    }

    /// Reads the stacks and the thread-local storage of these threads.
    pub(in crate::collect) fn read(granule: Granule, threads: &[RegisteredThread]) -> Self {
        let frames = walk::frames();
        let here = 0_usize;
        let innermost = frames.registers.first().map(|innermost| innermost.stack_pointer);
        let stacks = sys::used_stacks(innermost.unwrap_or((&raw const here).addr()));
        let thread = sys::thread_id();
        let is_own = |id: &u32| {
            threads.iter().any(|thread| thread.system_id == *id && thread::is_own(thread.number))
        };
        let unknown = stacks.unknown.iter().filter(|id| !is_own(id)).count();
        let handles = threads.iter().map(|thread| thread.handle).filter(|handle| *handle != 0);
        let mut handles: Vec<usize> = handles.collect();
        handles.sort_unstable();
        let mut words = PageList::new();
        for &UsedStack { thread, bounds } in
            stacks.known.iter().chain(&thread_locals(threads, &stacks))
        {
            each_word(bounds.low, bounds.high, |address, word| {
                let is_pointer = BLOCKS.enclosing(granule, word).is_some();
                let is_handle = || handles.binary_search(&word).is_ok();
                // A block may lie in the same mapping.
                let is_in_block = || BLOCKS.enclosing(granule, address).is_some();
                if (is_pointer || is_handle()) && !is_in_block() {
                    let word = StaticWord::read(address, word, (bounds.low, bounds.high));
                    words.push(StackWord { thread, word });
                }
            });
        }
        ThreadStacks { words, frames, thread, unknown }
    }

    /// Returns the frames with the addresses behind them, which the callers' stack pointers are.
    /// The outermost has none.
    pub(crate) fn frames(&self) -> impl Iterator<Item = (Registers, usize)> {
        let registers = self.frames.registers.iter();
        let ends = registers.clone().skip(1).map(|outer| outer.stack_pointer);
        let last = registers.clone().last().map(|last| last.stack_pointer);
        registers.copied().zip(ends.chain(last))
    }

    /// Returns a sentence about threads that ran.
    pub(in crate::collect) fn note(&self) -> Option<String> {
        let count = self.unknown;
        (count > 0).then(|| {
            let threads = if count == 1 { "a thread was" } else { "threads were" };
            let number = if count == 1 { String::new() } else { format!("{count} ") };
            format!("{number}{threads} running: the scan has no words of such stacks")
        })
    }
}

/// The most bytes of thread-local storage on either side of a thread's handle.
const THREAD_LOCALS: usize = 1 << 20;

/// Returns where the thread-local storage of threads is that have it not behind their stacks: of
/// the first thread, around its handle.
fn thread_locals(threads: &[RegisteredThread], stacks: &UsedStacks) -> Vec<UsedStack> {
    let of = |stack: &UsedStack| {
        let thread = threads.iter().find(|thread| thread.system_id == stack.thread)?;
        let StackBounds { low, high } = stacks.around(thread.handle)?;
        let bounds = StackBounds {
            low: low.max(thread.handle.saturating_sub(THREAD_LOCALS)),
            high: high.min(thread.handle.saturating_add(THREAD_LOCALS)),
        };
        let is_behind_stack = high == stack.bounds.high;
        (!is_behind_stack).then_some(UsedStack { thread: stack.thread, bounds })
    };
    stacks.known.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_ends_where_its_caller_begins() {
        let at = |stack_pointer| Registers { stack_pointer, ..Registers::default() };
        let mut stacks = ThreadStacks::empty();
        assert_eq!(stacks.frames().count(), 0);
        stacks.frames.registers = vec![at(0x10), at(0x30), at(0x80)];
        let ends: Vec<_> = stacks.frames().map(|(low, end)| (low.stack_pointer, end)).collect();
        assert_eq!(ends, [(0x10, 0x30), (0x30, 0x80), (0x80, 0x80)]);
    }

    #[test]
    fn threads_that_ran_are_named() {
        let of = |unknown| ThreadStacks { unknown, ..ThreadStacks::empty() }.note();
        assert_eq!(of(0), None);
        let one = "a thread was running: the scan has no words of such stacks";
        assert_eq!(of(1).as_deref(), Some(one));
        let two = "2 threads were running: the scan has no words of such stacks";
        assert_eq!(of(2).as_deref(), Some(two));
    }
}
