//! A program with a steady heap, whose blocks are replaced at random:
//! `steady MEGABYTES ALLOCATIONS POINTS`.
//!
//! Blocks have 16 to 4,096 bytes. Points are equally many allocations apart. At each it prints the
//! allocations so far, the bytes of the tracker's tables, and the resident bytes of the process.

#[path = "steady/program.rs"]
mod program;

dmd::global_allocator!();

fn main() -> Result<(), program::Failure> {
    program::run()
}
