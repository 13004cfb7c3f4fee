//! Measures a value with its block only through a pointer that owns the block.
use memreport::{MallocSizeOf, SizeOfIncludingThis, Traversal};

#[derive(SizeOfIncludingThis)]
struct Page {
    text: String,
}

#[derive(MallocSizeOf)]
struct Line(String);

#[derive(MallocSizeOf, SizeOfIncludingThis)]
struct Twice(String);

fn main() {
    let page = Page { text: String::new() };
    // That a plain value is refused is a doc test: the message lists types by enabled features.
    drop(page);
    let line = Box::new(Line(String::new()));
    Traversal::new().run(|ops| line.size_of_including_this(ops));
}
