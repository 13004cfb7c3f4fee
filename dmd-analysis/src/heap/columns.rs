//! The rows of a heap as columns of numbers, for the page, which groups them itself.

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::accounts::AccountLine;
use super::model::{Heap, Kind};
use super::table::Table;
use crate::analysis::{Class, Totals};

/// The numbers that the page groups rows by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    stack: u32,
    block_type: Option<u32>,
    scope: u32,
}

/// A row of the columns.
struct Line {
    key: Key,
    totals: Totals,
}

/// Returns the rows as JSON. Frames are functions without lines. Stacks begin with the innermost
/// frame.
#[must_use]
pub fn columns(heap: &Heap) -> Value {
    let mut functions: Table<&str> = Table::default();
    let mut stacks: Table<Vec<u32>> = Table::default();
    let mut numbers: FxHashMap<Key, usize> = FxHashMap::default();
    let mut lines: Vec<Line> = Vec::new();
    let of_heap: Vec<u32> = heap
        .stacks
        .iter()
        .map(|stack| {
            let function = |frame: &u32| functions.number(&heap.frames[*frame as usize].function);
            stacks.number(stack.iter().map(function).collect())
        })
        .collect();
    let untracked = heap.untracked();
    for row in heap.rows.iter().filter(|row| row.kind.class != Class::Untracked) {
        let Kind { stack, block_type, scope, .. } = row.kind;
        let key = Key { stack: of_heap[stack as usize], block_type, scope };
        let at = *numbers.entry(key).or_insert_with(|| {
            lines.push(Line { key, totals: Totals::default() });
            lines.len() - 1
        });
        lines[at].totals = lines[at].totals.plus(&heap.amount(row));
    }
    let column = |value: fn(&Line) -> Value| lines.iter().map(value).collect::<Vec<_>>();
    let account = |AccountLine { sign, bytes, text }: AccountLine| json!([sign, bytes, text]);
    json!({
        "program": heap.process.name(),
        "amount": heap.amount_name(),
        "isEstimate": heap.sample_bytes.is_some(),
        "accounts": heap.accounts().lines().into_iter().map(account).collect::<Vec<_>>(),
        "untracked": { "bytes": untracked.usable(), "blocks": untracked.blocks },
        "functions": functions.values(),
        "stacks": stacks.values(),
        "scopes": heap.scopes,
        "texts": heap.texts,
        "rows": {
            "stack": column(|line| json!(line.key.stack)),
            "type": column(|line| json!(line.key.block_type)),
            "scope": column(|line| json!(line.key.scope)),
            "blocks": column(|line| json!(line.totals.blocks)),
            "bytes": column(|line| json!(line.totals.usable())),
        },
    })
}
