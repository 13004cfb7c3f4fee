//! Attributes allocations of a thread to a reporter that counts its own blocks, or to the tracker.
#![expect(clippy::cast_possible_truncation, reason = "a program has not so many reporters")]

use super::attribution;

/// Runs `allocate` and attributes the blocks that it allocates to this reporter; 0 is none.
pub(crate) fn attributed_to<R>(reporter: u32, allocate: impl FnOnce() -> R) -> R {
    let _before = Before(attribution::replace_reporter(reporter as u16));
    allocate()
}

/// Restores the reporter when it is dropped, also after a panic, which a collection survives.
struct Before(u16);

impl Drop for Before {
    fn drop(&mut self) {
        attribution::replace_reporter(self.0);
    }
}

/// Returns the reporter to which allocations of this thread are attributed; 0 is none.
#[inline]
pub(crate) fn current() -> u32 {
    attribution::reporter()
}

/// The number that stands for the tracker itself. No reporter has it.
pub const OWN: u32 = 0xffff;

/// Runs `work` and attributes the blocks that it allocates to the tracker.
///
/// Such blocks are in no sum. Another collection that begins meanwhile does not count them as the
/// program's.
pub fn as_own<R>(work: impl FnOnce() -> R) -> R {
    attributed_to(OWN, work)
}

/// The number that stands for the functions of C. No reporter has it.
pub const C_HEAP: u32 = 0xfffe;

/// Runs `allocate` and attributes the blocks that it allocates to the functions of C, unless a
/// reporter or the tracker counts them.
pub fn as_c_heap<R>(allocate: impl FnOnce() -> R) -> R {
    let reporter = current();
    attributed_to(if reporter == 0 { C_HEAP } else { reporter }, allocate)
}

/// Returns the number of the reporter to which allocations of this thread are attributed; 0 is
/// none.
#[inline]
#[must_use]
pub fn current_on_alloc() -> u32 {
    current()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn a_panic_restores_the_reporter() {
        attributed_to(3, || {
            assert!(catch_unwind(|| as_own(|| panic!("in a reporter"))).is_err());
            assert_eq!(current(), 3);
        });
        assert_eq!(current(), 0);
    }

    #[test]
    fn blocks_of_c_are_a_reporters_if_it_counts_them() {
        assert_eq!(as_c_heap(current), C_HEAP);
        assert_eq!(attributed_to(3, || as_c_heap(current)), 3);
        assert_eq!(as_own(|| as_c_heap(current)), OWN);
    }
}
