//! The tracker's own functions, whose frames are left out of stacks.
//!
//! The innermost frames of every stack belong to the hooks. How many there are depends on the
//! build: a release build inlines most of them, a development build none. `hook::own_frames` learns
//! the functions from allocations of its own; here they are looked up when a stack is interned,
//! which happens once for each stack.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use super::walk::{AddressRange, function_start, own_range};

/// The most functions that are learned. A development build has about 20.
const MAX_FUNCTIONS: usize = 128;

/// The start addresses of the tracker's functions; 0 is a free place.
static FUNCTIONS: [AtomicUsize; MAX_FUNCTIONS] = [const { AtomicUsize::new(0) }; MAX_FUNCTIONS];

/// The number of cached verdicts, as a power of two.
const VERDICT_BITS: u32 = 10;

/// The multiplier of the hash of return addresses: 2⁶⁴ divided by the golden ratio.
const HASH: usize = 0x9e37_79b9_7f4a_7c15;

/// A cache of results: the return address, shifted by one, and a bit that is set for the tracker's
/// functions. A stale result for unloaded code is harmless: the tracker's own code stays loaded.
static VERDICTS: [AtomicUsize; 1 << VERDICT_BITS] =
    [const { AtomicUsize::new(0) }; 1 << VERDICT_BITS];

/// True if all code of the tracker's module is the tracker's: a preloaded library has no other.
static IS_WHOLE_MODULE: AtomicBool = AtomicBool::new(false);

/// Learns that all code of this module is the tracker's. Call it before stacks are taken.
pub(crate) fn learn_module() {
    IS_WHOLE_MODULE.store(true, Relaxed);
}

/// The code of a library that passes calls to the hooks, whose frames are left out, too.
static LIBRARY_LOW: AtomicUsize = AtomicUsize::new(0);
static LIBRARY_HIGH: AtomicUsize = AtomicUsize::new(0);

/// Learns that all code from `low` to `high` is the tracker's. Call it before stacks are taken.
pub(crate) fn learn_library(low: usize, high: usize) {
    LIBRARY_LOW.store(low, Relaxed);
    LIBRARY_HIGH.store(high, Relaxed);
}

/// Returns whether all code of this module is the tracker's.
pub(crate) fn is_whole_module() -> bool {
    IS_WHOLE_MODULE.load(Relaxed)
}

/// Learns that the function with this return address is the tracker's.
pub(crate) fn learn(return_address: usize) {
    let Some(function) = function_of(return_address) else { return };
    for place in &FUNCTIONS {
        // Relaxed: a place is a single word. A stack that is interned meanwhile may keep the frame.
        match place.compare_exchange(0, function, Relaxed, Relaxed) {
            // Return addresses in the function may have a verdict already.
            Ok(_) => return VERDICTS.iter().for_each(|verdict| verdict.store(0, Relaxed)),
            Err(known) if known == function => return,
            Err(_) => {}
        }
    }
}

/// Returns whether the function with this return address is the tracker's.
pub(crate) fn contains(return_address: usize) -> bool {
    let verdict = &VERDICTS[return_address.wrapping_mul(HASH) >> (usize::BITS - VERDICT_BITS)];
    // Relaxed: a verdict is a single word, which names its address.
    let cached = verdict.load(Relaxed);
    if cached >> 1 == return_address {
        return cached & 1 != 0;
    }
    let is_own = find(return_address);
    verdict.store(return_address << 1 | usize::from(is_own), Relaxed);
    is_own
}

fn find(return_address: usize) -> bool {
    if IS_WHOLE_MODULE.load(Relaxed) {
        let AddressRange { low, high } = own_range();
        return (low..high).contains(&return_address);
    }
    if (LIBRARY_LOW.load(Relaxed)..LIBRARY_HIGH.load(Relaxed)).contains(&return_address) {
        return true;
    }
    let Some(function) = function_of(return_address) else { return false };
    let mut learned = FUNCTIONS.iter().map(|place| place.load(Relaxed));
    learned.by_ref().take_while(|known| *known != 0).any(|known| known == function)
}

/// Returns the start of the function that contains this code.
pub(crate) fn function_at(code: usize) -> Option<usize> {
    function_start(code)
}

/// Returns the start of the function that contains the call before this return address.
pub(crate) fn function_of(return_address: usize) -> Option<usize> {
    function_start(return_address.checked_sub(1)?)
}
