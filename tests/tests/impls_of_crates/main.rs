//! Tests every impl for types of other crates: a value reports exactly the bytes that dropping it
//! frees.

mod plain;
mod sequences;
mod text;
mod maps;
mod graphs;
mod locks;
mod shared;
mod persistent;
mod interned;
mod numbers;
mod messages;
mod bridged;
mod listed;

use memreport::{MallocSizeOf, Measured, measure};

dmd::global_allocator!();

/// A type with an alignment larger than the allocator's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, MallocSizeOf)]
#[repr(align(128))]
struct Aligned(u8);

/// Returns a text of that length, in a block of its own.
fn text(length: usize) -> String {
    "t".repeat(length)
}

fn texts(number: usize) -> impl Iterator<Item = String> {
    (0..number).map(move |index| format!("{index} of {number}"))
}

/// Checks for an exact sum without formulas, for values that are not dropped, or not alone.
#[track_caller]
fn owns_blocks<T: ?Sized + MallocSizeOf>(value: &T, blocks: usize) -> Measured {
    let measured = measure(value);
    assert_eq!((measured.blocks, measured.computed, measured.busy), (blocks, 0, 0));
    measured
}

/// Returns the reported part of a value's heap, in percent.
fn percent_seen<T: MallocSizeOf>(make: impl FnOnce() -> T) -> usize {
    let mut made = None;
    let spent = dmd::testing::Budget::new().check(|_| made = Some(make())).expect("no limits");
    let value = made.expect("it was made");
    let measured = measure(&value);
    assert_eq!((measured.computed, measured.busy), (0, 0));
    100 * measured.bytes / spent.leaked.iter().sum::<usize>()
}
