//! A program with a steady heap, on jemalloc.

#[path = "steady/program.rs"]
mod program;

dmd::global_allocator!(tikv_jemallocator::Jemalloc);

fn main() -> Result<(), program::Failure> {
    program::run()
}
