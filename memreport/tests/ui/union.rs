//! Nobody knows which field of a union is alive.
use memreport::MallocSizeOf;

#[derive(MallocSizeOf)]
union Either {
    number: u64,
    pointer: *const u8,
}

fn main() {
    memreport::measure(&Either { number: 1 });
}
