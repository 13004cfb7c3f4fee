//! The reference unwinder: the crate `backtrace`, which takes microseconds per stack.
//!
//! `backtrace` calls `_Unwind_Backtrace` and takes no lock of its own in the form used here. The
//! unwinder of GCC looks up unwind tables. Since GCC 12, with glibc 2.35 and later, it calls
//! `_dl_find_object`, which takes no lock. Elsewhere it calls `dl_iterate_phdr`, which takes the
//! linker's lock. Programs that register frames at run time (`__register_frame`, as JIT compilers
//! do) can add a lock of the unwinder.
#![expect(unsafe_code, reason = "the form without a lock of its own is unsafe")]

use super::last::LastStack;
use super::last::MAX_FRAMES;

/// The unwinder's own frames come on top.
const MAX_ADDRESSES: usize = MAX_FRAMES + 16;

/// Walks this stack, and returns whether it is complete. `innermost` is the first frame to keep. If
/// it is not found, the unwinder's own frames stay; readers of dumps drop all frames up to the
/// allocator's.
#[cold]
#[inline(never)]
pub(crate) fn walk(innermost: Option<usize>, last: &LastStack) -> bool {
    let mut addresses = [0; MAX_ADDRESSES];
    let mut count = 0;
    let mut is_complete = true;
    let collect = |frame: &backtrace::Frame| {
        // Some unwinders end with a null frame.
        if frame.ip().is_null() {
            return true;
        }
        match addresses.get_mut(count) {
            Some(place) => *place = frame.ip().addr(),
            None => is_complete = false,
        }
        count += 1;
        is_complete
    };
    // SAFETY: only symbol resolution needs synchronisation, and this resolves no symbols.
    unsafe { backtrace::trace_unsynchronized(collect) };
    let addresses = addresses.get(..count.min(MAX_ADDRESSES)).unwrap_or(&[]);
    let own = innermost.and_then(|address| addresses.iter().position(|other| *other == address));
    let wanted = addresses.get(own.unwrap_or(0)..).unwrap_or(&[]);
    let kept = wanted.get(..MAX_FRAMES).unwrap_or(wanted);
    last.replace_by_addresses(kept);
    is_complete && kept.len() == wanted.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn walk_at_depth(depth: usize, last: &LastStack) -> bool {
        let is_complete =
            if depth == 0 { walk(None, last) } else { walk_at_depth(depth - 1, last) };
        // The call above is no tail call: each has a frame.
        std::hint::black_box(is_complete)
    }

    #[test]
    fn a_stack_is_complete_if_all_its_frames_fit() {
        let last = LastStack::new();
        assert!(walk_at_depth(0, &last));
        let room = MAX_FRAMES - last.length.get();
        assert!(walk_at_depth(room, &last));
        assert_eq!(last.length.get(), MAX_FRAMES);
        // A little more, and so much more that the unwinder stops.
        for more in [1, 8, 100] {
            assert!(!walk_at_depth(room + more, &last), "{more}");
            assert_eq!(last.length.get(), MAX_FRAMES);
        }
    }
}
