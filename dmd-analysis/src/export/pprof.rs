//! The profile of `go tool pprof` (profile.proto, gzipped).
//!
//! Samples have labels for thread, scope, type and reporters. Options add the span, and labels by
//! which a store of profiles tells processes apart.
//! Values are estimates for all blocks. No reader scales a profile of this form again.

mod wire;
mod profile;
mod encode;

use std::io::{self, Write};

use crate::heap::Heap;
use profile::Profile;

/// Writes the profile. `go tool pprof` shows live blocks first, if the heap contains them.
///
/// # Errors
///
/// Returns an error if writing fails.
pub fn write(heap: &Heap, out: &mut dyn Write) -> io::Result<()> {
    write_with(heap, Values::Live, out)
}

/// The values that a viewer shows first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Live blocks.
    Live,
    /// All blocks that were allocated since tracking began.
    Allocated,
}

/// Writes the profile. Viewers show these values first, if the heap contains them.
///
/// # Errors
///
/// Returns an error if writing fails.
pub fn write_with(heap: &Heap, opens_on: Values, out: &mut dyn Write) -> io::Result<()> {
    let mut profile = Profile::new(heap, opens_on);
    heap.rows.iter().for_each(|row| profile.sample(heap, row, 1));
    profile.write(heap, out)
}

/// Writes the growth from `first` to `second`, subtracted like `go tool pprof` does it. Negative
/// values shrank.
///
/// # Errors
///
/// Returns an error if writing fails.
pub fn write_growth(
    first: &Heap,
    second: &Heap,
    opens_on: Values,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut profile = Profile::new(second, opens_on);
    second.rows.iter().for_each(|row| profile.sample(second, row, 1));
    first.rows.iter().for_each(|row| profile.sample(first, row, -1));
    profile.write(second, out)
}
