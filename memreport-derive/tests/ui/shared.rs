//! Refuses unknown rules for shared blocks.
use std::rc::Rc;

use memreport::MallocSizeOf;

#[derive(MallocSizeOf)]
struct Page {
    #[malloc_size_of(shared)]
    first: Rc<u8>,
    #[malloc_size_of(shared = "here")]
    second: Rc<u8>,
    #[malloc_size_of(shared = there)]
    third: Rc<u8>,
    #[malloc_size_of(shared = here, shared = first)]
    fourth: Rc<u8>,
    #[malloc_size_of(shared = here, ignore = "cannot be both")]
    fifth: Rc<u8>,
}

fn main() {}
