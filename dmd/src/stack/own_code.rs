//! The tracker's own functions, whose frames are left out of stacks.
//!
//! The innermost frames of every stack belong to the hooks. How many there are depends on the
//! build: a release build inlines most of them, a development build none. `hook::own_frames` learns
//! the functions from allocations of its own; here they are looked up when a stack is interned,
//! which happens once for each stack.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::walk::function_start;

/// The most functions that are learned. A development build has about 20.
const MAX_FUNCTIONS: usize = 128;

/// The start addresses of the tracker's functions; 0 is a free place.
static FUNCTIONS: [AtomicUsize; MAX_FUNCTIONS] = [const { AtomicUsize::new(0) }; MAX_FUNCTIONS];

/// Learns that the function with this return address is the tracker's.
pub(crate) fn learn(return_address: usize) {
    let Some(function) = function_of(return_address) else { return };
    for place in &FUNCTIONS {
        // Relaxed: a place is a single word. A stack that is interned meanwhile may keep the frame.
        match place.compare_exchange(0, function, Relaxed, Relaxed) {
            Ok(_) => return,
            Err(known) if known == function => return,
            Err(_) => {}
        }
    }
}

/// Returns whether the function with this return address is the tracker's.
pub(crate) fn contains(return_address: usize) -> bool {
    let function = function_of(return_address).unwrap_or(0);
    let learned = FUNCTIONS.iter().map(|place| place.load(Relaxed)).take_while(|known| *known != 0);
    function != 0 && learned.into_iter().any(|known| known == function)
}

/// Returns the start of the function that contains this code.
pub(crate) fn function_at(code: usize) -> Option<usize> {
    function_start(code)
}

/// Returns the start of the function that contains the call before this return address.
pub(crate) fn function_of(return_address: usize) -> Option<usize> {
    function_start(return_address.checked_sub(1)?)
}
