//! Blocks that a test looks for in the dump: of sizes that nothing else has.

use std::path::Path;

use crate::Failure;

/// The size of planted blocks, in bytes: prime, so that nothing else has it by design.
pub(crate) const SIZE: usize = 12_347;

/// Makes that many.
#[inline(never)]
pub(crate) fn plant(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| vec![u8::try_from(number % 251).unwrap_or(0); SIZE]).collect()
}

/// Leaves a snapshot at this path, and beside it a dump if DMD is awake.
pub(crate) fn save(path: &Path) -> Result<(), Failure> {
    Ok(memreport::snapshot().save(path)?)
}

/// A quiet program: 10 blocks.
pub(crate) fn leave(path: &Path) -> Result<(), Failure> {
    let planted = plant(10);
    save(path)?;
    drop(planted);
    Ok(())
}
