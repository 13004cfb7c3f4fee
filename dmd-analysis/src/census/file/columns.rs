//! The groups of a dump's blocks on several axes at once, as columns of numbers, for the page,
//! which counts them by any of these axes itself.

use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};

use super::super::item::{Item, deciding_number};
use super::{Amount, File, FileOptions};
use crate::axis::{Axis, key};
use crate::read::{Dump, Sum};

/// The number of axes that a page counts by.
const AXES: usize = 11;

/// Returns these axes, with their words.
fn axes() -> [(&'static str, Axis); AXES] {
    [
        ("type", Axis::Type),
        ("crate", Axis::Crate),
        ("site", Axis::Site),
        ("file", Axis::File),
        ("reporter", Axis::reporter()),
        ("field", Axis::Field),
        ("state", Axis::State),
        ("scope", Axis::Scope),
        ("thread", Axis::Thread),
        ("size-class", Axis::SizeClass),
        ("age", Axis::age()),
    ]
}

/// The number of the key of a block on each axis, if it has one.
type Keys = [Option<u32>; AXES];

/// Returns the live blocks of a dump as JSON: for each group of blocks the number of its key on
/// each axis, and its amount.
///
/// `texts` are the keys; `null` stands for blocks without an answer. An axis on which no block has
/// an answer is left out. `untracked` is the sum of the blocks from before tracking began.
///
/// # Examples
///
/// ```
/// use memreport_analysis::census::{FileOptions, columns};
///
/// let dump = memreport_analysis::read::read_slice(
///     br##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "dark-matter"},
///          "blockList": [{"req": 100, "slop": 12, "num": 2},
///                        {"req": 8, "slop": 8, "reps": ["R"]}],
///          "traceTable": {"R": ["r"]}, "frameTable": {"r": "#00: explicit/words"}}"##,
/// )?;
/// let columns = columns(&dump, &FileOptions::default());
/// assert_eq!(columns["rows"]["bytes"], serde_json::json!([224, 16]));
/// let reporter = columns["rows"]["reporter"][1].as_u64().unwrap();
/// assert_eq!(columns["texts"][reporter as usize], "explicit/words");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn columns(dump: &Dump, options: &FileOptions) -> Value {
    let mut source = File::new(dump, options);
    let axes = axes();
    // The keys of each axis, by the number that decides them.
    let mut known: [FxHashMap<u64, Option<u32>>; AXES] = Default::default();
    let mut texts = Texts::default();
    let mut numbers: FxHashMap<Keys, usize> = FxHashMap::default();
    let mut rows: Vec<(Keys, Amount)> = Vec::new();
    for block in dump.blocks.iter().filter(|block| !block.kind.freed) {
        let item: Item = source.item(&block);
        let keys: Keys = std::array::from_fn(|at| {
            let axis = &axes[at].1;
            *known[at].entry(deciding_number(axis, &item)).or_insert_with(|| {
                key(&mut source, &item, axis).map(|key| texts.number(key.describe()))
            })
        });
        let at = *numbers.entry(keys).or_insert_with(|| {
            rows.push((keys, Amount::default()));
            rows.len() - 1
        });
        rows[at].1.add(&item.amount);
    }
    let mut columns = Map::new();
    for (at, (word, _)) in axes.iter().enumerate() {
        if rows.iter().any(|(keys, _)| keys[at].is_some()) {
            let keys: Vec<Option<u32>> = rows.iter().map(|(keys, _)| keys[at]).collect();
            columns.insert((*word).into(), json!(keys));
        }
    }
    columns.insert("blocks".into(), rows.iter().map(|(_, amount)| amount.count).collect());
    columns.insert("bytes".into(), rows.iter().map(|(_, amount)| amount.bytes).collect());
    let untracked = dump.extension.as_ref().map_or(Sum::default(), |ours| ours.untracked);
    json!({
        "texts": texts.all,
        "rows": columns,
        "untracked": { "bytes": untracked.bytes, "blocks": untracked.blocks },
    })
}

/// Texts with their numbers.
#[derive(Default)]
struct Texts {
    all: Vec<String>,
    numbers: FxHashMap<String, u32>,
}

impl Texts {
    fn number(&mut self, text: String) -> u32 {
        let next = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        *self.numbers.entry(text).or_insert_with_key(|text| {
            self.all.push(text.clone());
            next
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::census::{Breakdown, of_dump};
    use crate::heap::tests::HEAP;
    use crate::read::read_slice;

    /// The groups of an axis are those of a census by it.
    #[test]
    fn columns_are_what_a_census_counts() {
        let dump = read_slice(HEAP.as_bytes()).unwrap();
        let options = FileOptions::default();
        let columns = columns(&dump, &options);
        let numbers = |name: &str| -> Vec<Option<u64>> {
            let column = columns["rows"][name].as_array();
            column.into_iter().flatten().map(Value::as_u64).collect()
        };
        let (bytes, blocks) = (numbers("bytes"), numbers("blocks"));
        let mut compared = 0;
        for axis in ["type", "crate", "site", "reporter", "state", "scope", "thread", "size-class"]
        {
            let census = of_dump(&dump, &Breakdown::of_words(axis).unwrap(), &options);
            let mut json = Vec::new();
            census.write_json(&mut json).unwrap();
            let census: Value = serde_json::from_slice(&json).unwrap();
            let keys = numbers(axis);
            for (name, group) in census.as_object().unwrap() {
                // Blocks without an answer stand under a name of their own.
                let is_it = |key: &Option<u64>| match key {
                    Some(key) => columns["texts"][usize::try_from(*key).unwrap()] == **name,
                    None => false,
                };
                let of = |column: &[Option<u64>]| -> u64 {
                    let rows = keys.iter().zip(column).filter(|(key, _)| is_it(key));
                    rows.filter_map(|(_, amount)| *amount).sum()
                };
                if keys.iter().any(is_it) {
                    assert_eq!(Some(of(&bytes)), group["bytes"].as_u64(), "{axis} {name}");
                    assert_eq!(Some(of(&blocks)), group["count"].as_u64(), "{axis} {name}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 12, "only {compared} groups were compared");
    }
}
