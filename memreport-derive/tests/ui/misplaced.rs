//! Refuses misplaced, unknown and empty attributes, all at once.
use memreport::MallocSizeOf;

#[derive(MallocSizeOf)]
#[malloc_size_of(ignore = "why", shallow)]
#[malloc_size_of(bounds = "T: Clone")]
struct Page<T> {
    #[malloc_size_of(bound = "T: Clone")]
    first: T,
    #[malloc_size_of(crate = memreport)]
    second: u8,
    #[malloc_size_of(skip = "why")]
    third: u8,
    #[malloc_size_of]
    fourth: u8,
    #[malloc_size_of = "why"]
    fifth: u8,
    #[malloc_size_of(serde::skip)]
    sixth: u8,
}

#[derive(MallocSizeOf)]
enum Content {
    #[malloc_size_of(ignore = "why")]
    Text(String),
}

fn main() {}
