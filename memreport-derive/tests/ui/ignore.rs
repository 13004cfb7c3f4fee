//! Refuses an ignored field without a reason.
use memreport::MallocSizeOf;

#[derive(MallocSizeOf)]
struct Page {
    #[malloc_size_of(ignore)]
    first: Vec<u8>,
    #[malloc_size_of(ignore = "")]
    second: Vec<u8>,
    #[malloc_size_of(ignore = "  ")]
    third: Vec<u8>,
    #[malloc_size_of(ignore = because)]
    fourth: Vec<u8>,
    #[malloc_size_of(ignore("because"))]
    fifth: Vec<u8>,
}

fn main() {}
