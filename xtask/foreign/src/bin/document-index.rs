//! A search library: an index in memory, to which documents were added, and which is searched.

use std::error::Error;

use foreign::Counted;
use tantivy::collector::Count;
use tantivy::query::QueryParser;
use tantivy::schema::{STORED, STRING, Schema, TEXT};
use tantivy::{Index, doc};

dmd::global_allocator!((Counted): Counted);

const WORDS: [&str; 12] = [
    "heap", "arena", "block", "stack", "page", "table", "lock", "thread", "frame", "graph",
    "string", "number",
];

const DOCUMENTS: u64 = 20_000;

/// Returns a text of 60 words, another one for each number.
fn text(number: u64) -> String {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::new();
    for _ in 0..60 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let high = usize::try_from(state >> 40).unwrap_or(0);
        text.push_str(WORDS[high % WORDS.len()]);
        text.push_str(&format!("{} ", high % 900));
    }
    text
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut schema = Schema::builder();
    let name = schema.add_text_field("name", STRING | STORED);
    let body = schema.add_text_field("body", TEXT | STORED);
    let index = Index::create_in_ram(schema.build());
    let mut writer = index.writer_with_num_threads(1, 40_000_000)?;
    for number in 0..DOCUMENTS {
        writer.add_document(doc!(name => format!("document {number}"), body => text(number)))?;
        if number % 5000 == 4999 {
            writer.commit()?;
        }
    }
    let reader = index.reader()?;
    let parser = QueryParser::for_index(&index, vec![body]);
    let count = || -> tantivy::Result<u64> {
        let mut sum = 0;
        for (at, word) in WORDS.iter().enumerate() {
            let query = parser.parse_query(&format!("{word}{at}"))?;
            let found = reader.searcher().search(&query, &Count)?;
            sum = sum * 31 + u64::try_from(found).unwrap_or(0);
        }
        Ok(sum)
    };
    Ok(foreign::finish(|| count().unwrap_or(0))?)
}
