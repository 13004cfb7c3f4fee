//! Tests every impl for std's types: a value reports exactly the bytes that dropping it frees.

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

/// A type with an alignment larger than the allocator's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, MallocSizeOf)]
#[repr(align(128))]
struct Aligned(u8);

/// A type without a size, of which no two values are equal.
#[derive(Clone, Copy, Debug, Default, MallocSizeOf)]
struct Nothing;

fn text(length: usize) -> String {
    "t".repeat(length)
}

fn texts(number: usize) -> impl Iterator<Item = String> {
    (0..number).map(|index| text(index % 100))
}

/// Checks for an exact sum without formulas, for values that are not dropped, or not alone.
#[track_caller]
fn owns_blocks<T: ?Sized + MallocSizeOf>(value: &T, blocks: usize) -> Measured {
    let measured = measure(value);
    assert_eq!((measured.blocks, measured.computed, measured.busy), (blocks, 0, 0));
    measured
}
