//! Every impl for a type of another crate, against the truth: what a value reports is exactly what is freed when it is dropped.

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

/// A type with an alignment beyond what the allocator gives by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, MallocSizeOf)]
#[repr(align(128))]
struct Aligned(u8);

/// A text of that length, in a block of its own.
fn text(length: usize) -> String {
    "t".repeat(length)
}

fn texts(number: usize) -> impl Iterator<Item = String> {
    (0..number).map(move |index| format!("{index} of {number}"))
}

/// Exact, and nothing from a formula. For values that are not dropped, or not alone.
#[track_caller]
fn owns_blocks<T: ?Sized + MallocSizeOf>(value: &T, blocks: usize) -> Measured {
    let measured = measure(value);
    assert_eq!((measured.blocks, measured.computed, measured.busy), (blocks, 0, 0));
    measured
}

/// How many percent of what a value owns it reports.
fn percent_seen<T: MallocSizeOf>(make: impl FnOnce() -> T) -> usize {
    let mut made = None;
    let spent = dmd::testing::Budget::new().check(|_| made = Some(make())).expect("no limits");
    let value = made.expect("it was made");
    let measured = measure(&value);
    assert_eq!((measured.computed, measured.busy), (0, 0));
    100 * measured.bytes / spent.left.iter().sum::<usize>()
}
