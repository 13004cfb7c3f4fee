//! Blocks of two ages.

use std::time::Duration;

/// The number of blocks of each age.
const BLOCKS: usize = 50;

/// Makes blocks, waits, makes others, and saves a snapshot.
pub(crate) fn run(path: &str) -> std::io::Result<()> {
    let old: Vec<_> = (0..BLOCKS).map(|_| vec![1_u8; 10_000]).collect();
    std::thread::sleep(Duration::from_millis(400));
    let young: Vec<_> = (0..BLOCKS).map(|_| vec![1_u8; 20_000]).collect();
    memreport::snapshot().save(path)?;
    drop((old, young));
    Ok(())
}
