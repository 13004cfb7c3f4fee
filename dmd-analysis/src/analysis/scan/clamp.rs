//! Clamping of a scan dump: a word that points into a block becomes the block's start, any other
//! word becomes 0.

use std::ops::Range;
use std::{error, fmt};

use crate::read::{Dump, Mode};

/// The number of words of a dump by the effect of clamping.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ClampStats {
    /// Words that point to the start of a block.
    pub to_start: u64,
    /// Words that point into a block.
    pub into_block: u64,
    /// Words other than 0 that point to no block.
    pub to_nothing: u64,
    /// Words that already were 0.
    pub null: u64,
}

/// The error for a dump that cannot be clamped.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClampError {
    /// The dump was not taken in scan mode.
    NotScan,
    /// A block has no address.
    NoAddress {
        /// The index of the block in `blockList`.
        block: usize,
    },
    /// Two blocks overlap.
    Overlap {
        /// The address of the second block.
        addr: u64,
    },
    /// The words of blocks could not be read from the dump's file, for this reason.
    Words(String),
}

impl fmt::Display for ClampError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotScan => {
                f.write_str("contents are only in scan dumps: take one with DMD=--mode=scan")
            }
            Self::NoAddress { block } => {
                write!(f, "block {block} of blockList has no `addr`: the dump is damaged")
            }
            Self::Overlap { addr } => {
                write!(f, "the block at 0x{addr:x} lies in another: the dump is damaged")
            }
            Self::Words(reason) => write!(
                f,
                "the contents of blocks can no longer be read from the file: {reason}; \
                 leave it as it is until the answer is there"
            ),
        }
    }
}

impl error::Error for ClampError {}

/// Clamps the contents of every block, in place.
///
/// # Errors
///
/// If the dump is not a scan, or if it is damaged.
pub fn clamp(dump: &mut Dump) -> Result<ClampStats, ClampError> {
    let ranges = ranges(dump)?;
    let mut stats = ClampStats::default();
    let words = std::mem::take(&mut dump.words);
    let list = dump.contents.list(|block| dump.blocks.at(block).req);
    let mut words = words.into_memory(list).map_err(ClampError::Words)?;
    for contents in list {
        let start = usize::try_from(contents.place()).unwrap_or(usize::MAX);
        let own = &mut words[start..start + contents.count()];
        for word in own.iter_mut() {
            *word = clamp_word(&ranges, *word, &mut stats);
        }
        contents.keep(own.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1));
    }
    *dump.words.memory() = words;
    Ok(stats)
}

fn clamp_word(ranges: &[Range<u64>], word: u64, stats: &mut ClampStats) -> u64 {
    if word == 0 {
        stats.null += 1;
        return 0;
    }
    let after = ranges.partition_point(|range| range.start <= word);
    match after.checked_sub(1).map(|at| &ranges[at]).filter(|range| word < range.end) {
        None => {
            stats.to_nothing += 1;
            0
        }
        Some(range) => {
            if range.start == word {
                stats.to_start += 1;
            } else {
                stats.into_block += 1;
            }
            range.start
        }
    }
}

/// Returns the requested bytes of each block, sorted by address.
fn ranges(dump: &Dump) -> Result<Vec<Range<u64>>, ClampError> {
    if dump.invocation.mode != Mode::Scan {
        return Err(ClampError::NotScan);
    }
    let mut ranges = Vec::with_capacity(dump.blocks.len());
    for (at, block) in dump.blocks.iter().enumerate() {
        let start = block.addr.ok_or(ClampError::NoAddress { block: at })?.get();
        ranges.push(start..start.saturating_add(block.req));
    }
    ranges.sort_by_key(|range| range.start);
    match ranges.windows(2).find(|pair| pair[1].start < pair[0].end) {
        Some(pair) => Err(ClampError::Overlap { addr: pair[1].start }),
        None => Ok(ranges),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read_slice;

    #[test]
    fn each_word_counts_as_what_it_becomes() {
        let text = r#"{"version":5,"invocation":{"dmdEnvVar":null,"mode":"scan"},"blockList":[
            {"req":64,"addr":"1000","contents":["2000","2008","1000","103f","1001","1040","fff","0","7"]},
            {"req":32,"addr":"2000"}],"traceTable":{},"frameTable":{}}"#;
        let mut dump = read_slice(text.as_bytes()).unwrap();
        let stats = clamp(&mut dump).unwrap();
        assert_eq!(stats, ClampStats { to_start: 2, into_block: 3, to_nothing: 3, null: 1 });
        // Zeros at the end are no contents.
        assert_eq!(
            dump.words(&dump.contents_of(0).unwrap(), &mut Vec::new()),
            [0x2000, 0x2000, 0x1000, 0x1000, 0x1000]
        );
    }
}
