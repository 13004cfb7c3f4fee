//! Refuses an instance of a generic type whose parameter is not measurable.
use memreport::MallocSizeOf;

#[derive(MallocSizeOf)]
struct Page<T> {
    content: Vec<T>,
}

struct Window;

fn main() {
    memreport::measure(&Page { content: vec![Window] });
}
