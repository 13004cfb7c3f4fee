//! Many live blocks of 64 bytes, to measure a tracker's memory per block.

use std::{fs, io};

/// Returns the process's memory per block, in bytes, for that many blocks.
///
/// This is the block itself, 8 bytes for the pointer to it, and the overhead of the allocator and
/// its tracker.
pub(crate) fn bytes_per_block(count: usize) -> io::Result<f64> {
    let before = resident()?;
    let blocks: Vec<Box<[u8; 64]>> = (0..count).map(|_| Box::new([1; 64])).collect();
    let after = resident()?;
    std::hint::black_box(&blocks);
    Ok((after - before) / count as f64)
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> io::Result<f64> {
    let text = fs::read_to_string("/proc/self/smaps_rollup")?;
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:"));
    let kibibytes = line.and_then(|line| line.trim_end_matches("kB").trim().parse::<f64>().ok());
    kibibytes
        .map(|number| number * 1024.0)
        .ok_or_else(|| io::Error::other("no Rss in smaps_rollup"))
}
