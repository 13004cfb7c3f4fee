//! A search library: an index that is written, searched, and emptied again.

use foreign::{Counted, WORDS, text};
use tantivy::collector::TopDocs;
use tantivy::query::QueryParser;
use tantivy::schema::{STORED, Schema, TEXT};
use tantivy::{Index, doc};

dmd::global_allocator!((Counted): Counted);

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
