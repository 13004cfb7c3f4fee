//! The difference of two dumps: the second minus the first, record by record.

use std::{error, fmt};

use rustc_hash::FxHashMap;

use super::digest::{Digest, Section};
use super::record::Record;

/// The error for two dumps of different modes.
#[derive(Debug, PartialEq, Eq)]
pub struct DifferentModes;

impl fmt::Display for DifferentModes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "dumps of different modes cannot be compared: take both with the same --mode in $DMD",
        )
    }
}

impl error::Error for DifferentModes {}

/// Returns `second - first`. Both must have been digested with the same [`Stacks`](super::Stacks).
///
/// # Errors
///
/// If the dumps were taken in different modes.
pub fn diff(first: Digest, second: Digest) -> Result<Digest, DifferentModes> {
    if first.mode != second.mode {
        return Err(DifferentModes);
    }
    let dmd_env_vars = first.dmd_env_vars.into_iter().chain(second.dmd_env_vars).collect();
    let heap = second.heap.minus(&first.heap);
    let pairs = first.sections.into_iter().zip(second.sections);
    let sections = pairs
        .map(|(old, new)| Section {
            class: old.class,
            records: diff_records(old.records, new.records),
        })
        .collect();
    Ok(Digest { dmd_env_vars, mode: first.mode, heap, sections })
}

/// Returns the records of the first dump in their order, then those that only the second dump has.
fn diff_records(old: Vec<Record>, new: Vec<Record>) -> Vec<Record> {
    let places: FxHashMap<_, usize> = new.iter().map(Record::key).zip(0..).collect();
    let mut new: Vec<Option<Record>> = new.into_iter().map(Some).collect();
    let mut records = Vec::new();
    for mut record in old {
        let matching = places.get(&record.key()).and_then(|&at| new[at].take());
        let Some(mut changed) = matching else {
            record.negate();
            records.push(record);
            continue;
        };
        changed.subtract(&record);
        if !changed.is_zero() {
            records.push(changed);
        }
    }
    records.extend(new.into_iter().flatten());
    records
}
