//! Blocks that a test looks for in the dump, of a size that occurs nowhere else.

use std::path::Path;

use crate::Failure;

/// The size of planted blocks, in bytes: a prime, so that no other code uses it by design.
pub(crate) const SIZE: usize = 12_347;

/// Returns this many planted blocks.
#[inline(never)]
pub(crate) fn plant(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| vec![u8::try_from(number % 251).unwrap_or(0); SIZE]).collect()
}

/// Saves a snapshot at this path, with a dump beside it if DMD is awake.
pub(crate) fn save(path: &Path) -> Result<(), Failure> {
    Ok(memreport::snapshot().save(path)?)
}

/// Leaves a dump of 10 blocks and ends: a quiet program.
pub(crate) fn leave(path: &Path) -> Result<(), Failure> {
    let planted = plant(10);
    save(path)?;
    drop(planted);
    Ok(())
}
