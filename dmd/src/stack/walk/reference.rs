//! The reference: the unwinder of the crate `backtrace`, which takes microseconds.
#![expect(unsafe_code, reason = "the form that takes no lock is unsafe")]

use super::last::LastStack;
use super::last::MAX_FRAMES;

/// The reference's own frames come on top.
const MOST: usize = MAX_FRAMES + 16;

/// Takes this stack, and says whether all of it was kept. `innermost` is the first frame that is wanted; if it is not among
/// them, the unwinder's own stay: whoever reads the dump drops all up to the allocator's.
#[cold]
#[inline(never)]
pub(crate) fn walk(innermost: Option<usize>, last: &LastStack) -> bool {
    let mut addresses = [0; MOST];
    let mut count = 0;
    let mut is_whole = true;
    let keep = |frame: &backtrace::Frame| {
        // Some unwinders end with a frame that is none.
        if frame.ip().is_null() {
            return true;
        }
        match addresses.get_mut(count) {
            Some(place) => *place = frame.ip().addr(),
            None => is_whole = false,
        }
        count += 1;
        is_whole
    };
    // SAFETY: what is synchronised otherwise is the resolving of symbols, which does not happen here.
    unsafe { backtrace::trace_unsynchronized(keep) };
    let addresses = addresses.get(..count.min(MOST)).unwrap_or(&[]);
    let own = innermost.and_then(|address| addresses.iter().position(|other| *other == address));
    let wanted = addresses.get(own.unwrap_or(0)..).unwrap_or(&[]);
    let kept = wanted.get(..MAX_FRAMES).unwrap_or(wanted);
    last.replace_by_addresses(kept);
    is_whole && kept.len() == wanted.len()
}
