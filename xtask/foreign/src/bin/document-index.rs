//! A search library: an index in memory, to which documents were added, and which is searched.

use std::error::Error;

use foreign::{Counted, WORDS, text};
use tantivy::collector::Count;
use tantivy::query::QueryParser;
use tantivy::schema::{STORED, STRING, Schema, TEXT};
use tantivy::{Index, doc};

dmd::global_allocator!((Counted): Counted);

const DOCUMENTS: u64 = 20_000;

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
