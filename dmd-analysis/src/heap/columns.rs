//! The rows of a heap as columns of numbers, for the page, which groups them itself.

mod call_tree;
mod recording;

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use self::call_tree::CallTree;
use super::accounts::AccountLine;
use super::model::{Heap, Kind, Row};
use crate::analysis::number::saturated;
use crate::analysis::{Class, Totals};

/// The numbers that the page groups rows by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    class: Class,
    stack: u32,
    block_type: Option<u32>,
    scope: u32,
    thread: Option<u32>,
    reporter: Option<u32>,
}

/// A row of the columns.
struct Line {
    key: Key,
    totals: Totals,
}

impl Key {
    fn new(kind: &Kind, stack: u32) -> Self {
        let Kind { class, block_type, scope, thread, .. } = *kind;
        let reporter = kind.reports.first().map(|report| report.path);
        Key { class, stack, block_type, scope, thread, reporter }
    }
}

/// Returns the rows as JSON. Frames are functions without lines. A stack is a node of the call
/// tree.
#[must_use]
pub fn columns(heap: &Heap) -> Value {
    let mut calls = CallTree::default();
    let stacks = calls.stacks(heap);
    let mut numbers: FxHashMap<Key, usize> = FxHashMap::default();
    let mut lines: Vec<Line> = Vec::new();
    let untracked = heap.untracked();
    for row in tracked(heap) {
        let key = Key::new(&row.kind, stacks[row.kind.stack as usize]);
        let at = *numbers.entry(key).or_insert_with(|| {
            lines.push(Line { key, totals: Totals::default() });
            lines.len() - 1
        });
        lines[at].totals = lines[at].totals.plus(&heap.amount(row));
    }
    let column = |value: fn(&Line) -> Value| lines.iter().map(value).collect::<Vec<_>>();
    let account =
        |AccountLine { sign, bytes, text }: AccountLine| json!([sign, saturated(bytes), text]);
    json!({
        "program": heap.process.name(),
        "pid": heap.process.pid,
        "mode": heap.process.mode,
        "uptimeMs": heap.process.uptime_ms,
        "amount": heap.amount_name(),
        "isEstimate": heap.sample_bytes.is_some(),
        "accounts": heap.accounts().lines().into_iter().map(account).collect::<Vec<_>>(),
        "untracked": { "bytes": saturated(untracked.usable()), "blocks": saturated(untracked.blocks) },
        "calls": calls.to_json(),
        "scopes": heap.scopes,
        "texts": heap.texts,
        "rows": {
            "state": column(|line| json!(line.key.class.name())),
            "stack": column(|line| json!(line.key.stack)),
            "type": column(|line| json!(line.key.block_type)),
            "scope": column(|line| json!(line.key.scope)),
            "thread": column(|line| json!(line.key.thread)),
            "reporter": column(|line| json!(line.key.reporter)),
            "blocks": column(|line| json!(saturated(line.totals.blocks))),
            "bytes": column(|line| json!(saturated(line.totals.usable()))),
        },
    })
}

fn tracked(heap: &Heap) -> impl Iterator<Item = &Row> {
    heap.rows.iter().filter(|row| row.kind.class != Class::Untracked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::HeapOptions;
    use crate::heap::tests::HEAP;
    use crate::read::read_slice;

    #[test]
    fn columns_add_up_to_the_heap() {
        let dump = read_slice(HEAP.as_bytes()).unwrap();
        let heap = Heap::new(&dump, &HeapOptions::default()).unwrap();
        let columns = columns(&heap);
        let sum = |column: &str| -> i64 {
            columns["rows"][column].as_array().unwrap().iter().filter_map(Value::as_i64).sum()
        };
        let untracked = &columns["untracked"];
        assert_eq!(
            i128::from(sum("bytes") + untracked["bytes"].as_i64().unwrap()),
            heap.totals().usable()
        );
        assert_eq!(
            i128::from(sum("blocks") + untracked["blocks"].as_i64().unwrap()),
            heap.totals().blocks
        );
        let up = columns["calls"]["up"].as_array().unwrap();
        let is_before = |(node, up): (u64, &Value)| up.as_u64().unwrap() <= node;
        assert!((0..).zip(up).all(is_before), "{up:?}");
    }
}
