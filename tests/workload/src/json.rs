//! Parses a big text in JSON into a `Value` and drops it: millions of small blocks, few of them
//! freed before the end.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::Numbers;

/// Writes an array of objects with strings, lists and nested objects, of at least this many bytes.
/// The bytes are the same in every run.
///
/// # Errors
///
/// Those of writing.
pub fn write_text(bytes: usize, out: &mut dyn Write) -> io::Result<()> {
    let mut numbers = Numbers::new(7);
    let mut written = 0;
    out.write_all(b"[")?;
    for id in 0_u64.. {
        let object = object(id, &mut numbers).to_string();
        if id > 0 {
            out.write_all(b",\n")?;
        }
        out.write_all(object.as_bytes())?;
        written += object.len();
        if written >= bytes {
            break;
        }
    }
    out.write_all(b"]")
}

fn object(id: u64, numbers: &mut Numbers) -> Value {
    let count = numbers.below(5);
    let tags: Vec<String> = (0..count).map(|_| format!("tag-{}", numbers.below(100))).collect();
    let name = "n".repeat(numbers.index(40));
    json!({ "id": id, "name": name, "tags": tags, "place": { "x": numbers.below(1000), "y": "east" } })
}

/// Parses the text and drops the value. The result depends on all of it.
pub(crate) fn parse(text: &str) -> serde_json::Result<usize> {
    let parsed: Value = serde_json::from_str(text)?;
    Ok(parsed.as_array().map_or(0, Vec::len))
}
