//! The rows of a heap as columns of numbers, for a page that breaks them down itself, in any order.

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::Heap;
use super::table::Table;
use crate::analysis::Totals;

/// What a row is told by: the numbers of its stack, its type and its scopes.
type Key = (u32, Option<u32>, u32);

/// The rows as JSON. Frames are functions, without lines; stacks begin with the innermost.
#[must_use]
pub fn columns(heap: &Heap) -> Value {
    let mut functions: Table<&str> = Table::default();
    let mut stacks: Table<Vec<u32>> = Table::default();
    let mut numbers: FxHashMap<Key, usize> = FxHashMap::default();
    let mut rows: Vec<(Key, Totals)> = Vec::new();
    let of_heap: Vec<u32> = heap
        .stacks
        .iter()
        .map(|stack| {
            let function = |frame: &u32| functions.number(&heap.frames[*frame as usize].function);
            stacks.number(stack.iter().map(function).collect())
        })
        .collect();
    for row in &heap.rows {
        let key = (of_heap[row.kind.stack as usize], row.kind.block_type, row.kind.scope);
        let at = *numbers.entry(key).or_insert_with(|| {
            rows.push((key, Totals::default()));
            rows.len() - 1
        });
        rows[at].1 = rows[at].1.plus(&heap.amount(row));
    }
    let column = |value: fn(&(Key, Totals)) -> Value| rows.iter().map(value).collect::<Vec<_>>();
    let account = |(sign, bytes, what): (char, i128, String)| json!([sign, bytes, what]);
    json!({
        "program": heap.process.name(),
        "amount": heap.amount_name(),
        "isEstimate": heap.sample_bytes.is_some(),
        "accounts": heap.accounts().lines().into_iter().map(account).collect::<Vec<_>>(),
        "functions": functions.values(),
        "stacks": stacks.values(),
        "scopes": heap.scopes,
        "texts": heap.texts,
        "rows": {
            "stack": column(|((stack, ..), _)| json!(stack)),
            "type": column(|((_, name, _), _)| json!(name)),
            "scope": column(|((.., scope), _)| json!(scope)),
            "blocks": column(|(_, totals)| json!(totals.blocks)),
            "bytes": column(|(_, totals)| json!(totals.usable())),
        },
    })
}
