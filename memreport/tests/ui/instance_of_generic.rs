//! A generic type is measurable where what it owns is.
use memreport::MallocSizeOf;

#[derive(MallocSizeOf)]
struct Page<T> {
    content: Vec<T>,
}

struct Window;

fn main() {
    memreport::measure(&Page { content: vec![Window] });
}
