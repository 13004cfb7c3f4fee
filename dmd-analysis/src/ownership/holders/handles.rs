//! Handles of threads: a word with the pointer of a thread, as a `JoinHandle` has it. What has the
//! handle holds the thread, as a pointer holds a block.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::scan::links::BlockRanges;
use crate::ownership::roots::Roots;

/// A handle: the node of the block or the root that has it, and the node of the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Handle {
    pub(super) from: u32,
    pub(super) thread: u32,
}

/// Finds the handles in blocks and in variables of functions; of threads without those, in other
/// words of stacks. Statics do not count: there, such a word is the identity of a thread, as in a
/// list of all threads. Nothing holds its own thread.
pub(super) fn find(ranges: &BlockRanges<'_>, roots: &Roots<'_>) -> Vec<Handle> {
    let threads: FxHashMap<u64, u32> = roots.threads(ranges.dump()).collect();
    let (Some(&low), Some(&high)) = (threads.keys().min(), threads.keys().max()) else {
        return Vec::new();
    };
    let thread_at =
        |word: u64| (low..=high).contains(&word).then(|| threads.get(&word).copied()).flatten();
    let (mut found, mut others) = (Vec::new(), Vec::new());
    let mut words = ranges.dump().words_in_order();
    for contents in ranges.dump().contents() {
        let from = u32::try_from(contents.block()).unwrap_or(u32::MAX);
        words.visit(contents.place(), contents.count(), |_, piece| {
            let threads = piece.iter().filter_map(|word| thread_at(*word));
            found.extend(threads.map(|thread| Handle { from, thread }));
        });
    }
    for (source, from) in roots.sources.iter().zip(roots.first..) {
        for word in source.words.iter().filter(|_| !source.is_static) {
            if let Some(thread) = thread_at(word.to)
                && roots.whole(from) != thread
            {
                let list = if word.variable.is_some() { &mut found } else { &mut others };
                list.push(Handle { from, thread });
            }
        }
    }
    let known: FxHashSet<u32> = found.iter().map(|handle| handle.thread).collect();
    found.extend(others.into_iter().filter(|handle| !known.contains(&handle.thread)));
    found.sort_unstable();
    found.dedup();
    found
}
