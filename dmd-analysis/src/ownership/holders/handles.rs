//! Handles of threads: a word with the pointer of a thread, as a `JoinHandle` has it. What has the
//! handle holds the thread, as a pointer holds a block.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::scan::links::BlockRanges;
use crate::ownership::roots::Roots;
use crate::retention::NONE;
use crate::retention::graph::sources::Sources;

use super::strongest::Strongest;

/// A handle: the node of the block or the root that has it, and the node of the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Handle {
    pub(super) from: u32,
    pub(super) thread: u32,
}

/// Returns the sources of all nodes. A thread with a handle hangs on its handles alone; also on the
/// root, if these are in memory that only the thread leads to.
pub(super) fn sources(handles: Vec<Handle>, strongest: &mut Strongest, root: u32) -> Sources {
    let sources = with_handles(&handles, strongest);
    if handles.is_empty() {
        return sources;
    }
    let reached = sources.reached(root);
    let is_reached = |handle: &Handle| reached.contains(handle.thread);
    if handles.iter().all(is_reached) {
        return sources;
    }
    strongest.only = sources.into_only();
    let known = handles.iter().filter(|handle| is_reached(handle)).map(|handle| handle.thread);
    let known = known.chain([root]).collect();
    with_handles(&with_roots(handles, known, strongest, root), strongest)
}

fn with_handles(handles: &[Handle], strongest: &mut Strongest) -> Sources {
    handles.iter().for_each(|handle| strongest.only[handle.thread as usize] = NONE);
    let mut sources = strongest.take_sources();
    handles.iter().for_each(|handle| sources.add(handle.from, handle.thread));
    sources
}

/// Adds a handle of the root for each thread that neither the root nor a thread before it leads to.
fn with_roots(
    mut handles: Vec<Handle>,
    mut reached: FxHashSet<u32>,
    strongest: &Strongest,
    root: u32,
) -> Vec<Handle> {
    let mut holders: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for &Handle { from, thread } in &handles {
        holders.entry(thread).or_default().push(from);
    }
    for at in 0..handles.len() {
        let thread = handles[at].thread;
        if reached.insert(thread) && !is_held(thread, &holders, strongest, &reached) {
            handles.push(Handle { from: root, thread });
        }
    }
    handles
}

/// Returns whether something that is reached leads to a thread.
fn is_held(
    thread: u32,
    holders: &FxHashMap<u32, Vec<u32>>,
    strongest: &Strongest,
    reached: &FxHashSet<u32>,
) -> bool {
    let mut seen = FxHashSet::default();
    let mut pending = vec![thread];
    while let Some(node) = pending.pop() {
        if node != thread && reached.contains(&node) {
            return true;
        }
        if seen.insert(node) {
            match holders.get(&node) {
                Some(holders) => pending.extend(holders),
                None => strongest.each_source(node, |source| pending.push(source)),
            }
        }
    }
    false
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
