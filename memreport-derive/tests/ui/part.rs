//! Refuses invalid names of parts.
use memreport::MallocSizeOf;

#[derive(MallocSizeOf)]
struct Page {
    #[malloc_size_of(part = "")]
    first: Vec<u8>,
    #[malloc_size_of(part = name)]
    second: Vec<u8>,
    #[malloc_size_of(part = "a//b")]
    third: Vec<u8>,
    #[malloc_size_of(part("name"))]
    fourth: Vec<u8>,
    #[malloc_size_of(part, ignore = "cannot be both")]
    fifth: Vec<u8>,
    #[malloc_size_of(shallow = true)]
    sixth: Vec<u8>,
}

fn main() {}
