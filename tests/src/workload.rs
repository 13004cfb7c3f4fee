//! A workload of everyday allocations: parse JSON, fill maps, share and drop. The same work in every binary that times it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

/// A deterministic stream of numbers (xorshift64*).
#[derive(Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// Always the same stream for the same seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Numbers(seed | 1)
    }

    /// The next number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }
}

/// The text that is parsed: an array of objects with strings, lists and nested objects.
#[must_use]
pub fn json_text(objects: u64) -> String {
    let mut numbers = Numbers::new(7);
    let objects = (0..objects).map(|id| {
        let tags: Vec<Value> = (0..numbers.below(5)).map(|_| format!("tag-{}", numbers.below(100)).into()).collect();
        let name = "n".repeat(usize::try_from(numbers.below(40)).unwrap_or(0));
        serde_json::json!({ "id": id, "name": name, "tags": tags, "place": { "x": numbers.below(1000), "y": "east" } })
    });
    Value::Array(objects.collect()).to_string()
}

#[derive(Debug)]
struct Node {
    name: String,
    next: Option<Arc<Node>>,
}

/// One round of the work; the answer depends on all of it.
#[must_use]
pub fn round(text: &str) -> usize {
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

/// Runs the rounds that `argv[1]` asks for, and prints the nanoseconds of processor time that they took.
///
/// # Errors
///
/// Those of printing.
pub fn run() -> std::io::Result<()> {
    use std::io::Write as _;
    let rounds: u32 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20);
    let text = json_text(3000);
    std::hint::black_box(round(&text));
    let before = processor_time();
    for _ in 0..rounds {
        std::hint::black_box(round(std::hint::black_box(&text)));
    }
    writeln!(std::io::stdout(), "{}", processor_time().saturating_sub(before).as_nanos())
}

/// The processor time of this thread.
fn processor_time() -> Duration {
    // On-CPU nanoseconds are the first number of the scheduler's statistics.
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(
        text.split_ascii_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0),
    )
}
