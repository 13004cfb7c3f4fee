//! Every impl for std's types, against the truth: what a value reports is exactly what is freed when it is dropped.

mod plain;
mod sequences;
mod boxes;
mod cells;
mod shared;
mod maps;
mod derived;
mod threads;
mod errors;
mod iterators;
mod waiting;

use memreport::{MallocSizeOf, Measured, measure};

dmd::global_allocator!();

/// A type with an alignment beyond what the allocator gives by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, MallocSizeOf)]
#[repr(align(128))]
struct Aligned(u8);

/// A type without a size, of which no two values are the same.
#[derive(Clone, Copy, Debug, Default, MallocSizeOf)]
struct Nothing;

fn text(length: usize) -> String {
    "t".repeat(length)
}

fn texts(number: usize) -> impl Iterator<Item = String> {
    (0..number).map(|index| text(index % 100))
}

/// Exact, and nothing from a formula. For values that are not dropped, or not alone.
#[track_caller]
fn owns_blocks<T: ?Sized + MallocSizeOf>(value: &T, blocks: usize) -> Measured {
    let measured = measure(value);
    assert_eq!((measured.blocks, measured.computed, measured.busy), (blocks, 0, 0));
    measured
}
