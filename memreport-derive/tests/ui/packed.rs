//! Refuses packed structs, whose fields cannot be borrowed.
use memreport::MallocSizeOf;

#[derive(MallocSizeOf)]
#[repr(C, packed(2))]
struct Page {
    tag: u8,
    text: String,
}

fn main() {}
