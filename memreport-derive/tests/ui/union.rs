//! Refuses unions, whose live field is unknown.
use memreport::MallocSizeOf;

#[derive(MallocSizeOf)]
union Either {
    number: u64,
    pointer: *const u8,
}

fn main() {
    memreport::measure(&Either { number: 1 });
}
