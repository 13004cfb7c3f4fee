//! Refuses functions with the wrong signature.
use memreport::{MallocSizeOf, Ops};

#[derive(MallocSizeOf)]
struct Page {
    #[malloc_size_of(with)]
    first: Vec<u8>,
    #[malloc_size_of(with = "measure")]
    second: Vec<u8>,
    #[malloc_size_of(with = 1 + 2)]
    third: Vec<u8>,
    #[malloc_size_of(with = measure, shallow)]
    fourth: Vec<u8>,
}

#[derive(MallocSizeOf)]
struct OfAnotherType {
    #[malloc_size_of(with = measure)]
    text: String,
}

fn measure<'a>(bytes: &'a Vec<u8>, ops: &Ops<'a>) {
    ops.add(bytes);
}

fn main() {}
