//! A search library: an index that is written, searched, and emptied again.

use foreign::Counted;
use tantivy::collector::TopDocs;
use tantivy::query::QueryParser;
use tantivy::schema::{STORED, Schema, TEXT};
use tantivy::{Index, doc};

dmd::global_allocator!((Counted): Counted);

const WORDS: [&str; 12] = [
    "heap", "arena", "block", "stack", "page", "table", "lock", "thread", "frame", "graph",
    "string", "number",
];

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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut schema = Schema::builder();
    let body = schema.add_text_field("body", TEXT | STORED);
    let index = Index::create_in_ram(schema.build());
    let mut writer = index.writer_with_num_threads(2, 40_000_000)?;
    let reader = index.reader()?;
    let parser = QueryParser::for_index(&index, vec![body]);
    let mut round = |number: u64| -> tantivy::Result<()> {
        if number % 20 == 19 {
            writer.delete_all_documents()?;
        }
        for document in 0..2000 {
            writer.add_document(doc!(body => text(number * 2000 + document)))?;
        }
        writer.commit()?;
        reader.reload()?;
        let searcher = reader.searcher();
        for word in WORDS {
            let query = parser.parse_query(&format!("{word}{}", number % 900))?;
            let found = searcher.search(&query, &TopDocs::with_limit(10))?;
            for (_, address) in found {
                let _: tantivy::TantivyDocument = searcher.doc(address)?;
            }
        }
        Ok(())
    };
    foreign::work(|number| {
        if let Err(error) = round(number) {
            panic!("the index fails: {error}");
        }
    })?;
    Ok(())
}
