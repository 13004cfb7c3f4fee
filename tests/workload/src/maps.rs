//! Everyday allocations: parse JSON, fill maps, share nodes and drop them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;

struct Node {
    name: String,
    next: Option<Arc<Node>>,
}

/// Does one round of the work. The result depends on all of it.
pub(crate) fn round(text: &str) -> usize {
    let parsed: Value = serde_json::from_str(text).unwrap_or_default();
    let mut by_tag: HashMap<String, Vec<u64>> = HashMap::new();
    let mut by_id: BTreeMap<u64, Box<str>> = BTreeMap::new();
    let mut chain: Option<Arc<Node>> = None;
    let mut shared = Vec::new();
    for object in parsed.as_array().into_iter().flatten() {
        let id = object["id"].as_u64().unwrap_or(0);
        let name = object["name"].as_str().unwrap_or("");
        for tag in object["tags"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            by_tag.entry(tag.to_owned()).or_default().push(id);
        }
        by_id.insert(id.wrapping_mul(0x9e37_79b9) % 100_003, name.into());
        if id % 8 == 0 {
            chain = Some(Arc::new(Node {
                name: format!("{name}{id}"),
                next: chain.take().filter(|_| id % 64 != 0),
            }));
            shared.extend(chain.clone());
        }
    }
    let names: usize =
        shared.iter().map(|node| node.name.len() + usize::from(node.next.is_some())).sum();
    names
        + by_tag.values().map(Vec::len).sum::<usize>()
        + by_id.values().map(|name| name.len()).sum::<usize>()
}
