//! Random paths through code of all kinds, with stacks taken on the way.

use std::fmt::Debug;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};

use memreport_workload::Numbers;

use crate::compare::{Kind, take};
use crate::foreign;

/// Walks one path, sometimes on a thread of its own.
pub(crate) fn walk_one(numbers: &mut Numbers) {
    let depth = numbers.below(24);
    match numbers.below(60) {
        0 => std::thread::scope(|scope| {
            let seed = numbers.below(1 << 30);
            scope.spawn(move || {
                for _ in 0..20 {
                    go(&mut Numbers::new(seed), depth, Kind::Plain);
                }
            });
        }),
        1 => recurse(numbers.below(400), numbers),
        _ => go(numbers, depth, Kind::Plain),
    }
}

/// Walks to this depth and back, and takes stacks on the way, also by an allocation.
#[inline(never)]
pub(crate) fn go(numbers: &mut Numbers, depth: u64, kind: Kind) {
    if numbers.below(6) == 0 {
        take(kind);
    }
    if depth == 0 {
        drop(black_box(Box::new(numbers.below(9))));
        take(kind);
        return;
    }
    let deeper = depth - 1;
    match numbers.below(14) {
        0 => generic(7_u8, numbers, deeper, kind),
        1 => generic("word", numbers, deeper, kind),
        2 => (0..1 + numbers.below(2)).for_each(|_| go(numbers, deeper, kind)),
        3 => {
            let boxed: Box<dyn FnMut(&mut Numbers)> =
                Box::new(move |numbers| go(numbers, deeper, kind));
            black_box(boxed)(numbers);
        }
        4 => big_frame::<1000>(numbers, deeper, kind),
        5 => big_frame::<70_000>(numbers, deeper, kind),
        6 => inlined(numbers, deeper, kind),
        7 => {
            let _ = catch_unwind(AssertUnwindSafe(|| go(numbers, deeper, kind)));
        }
        8 => panics(numbers, deeper),
        9 => foreign::sort(&mut || go(numbers, deeper / 2, Kind::InCallback)),
        10 => foreign::search(&mut || go(numbers, deeper / 2, Kind::InCallback)),
        11 => foreign::interrupt(numbers.below(2) == 0, numbers.below(1 << 30), deeper / 4),
        12 => foreign::on_other_stack(&mut || go(numbers, deeper / 2, Kind::OnOtherStack)),
        _ => aligned(numbers, deeper, kind),
    }
}

#[inline(never)]
fn generic<T: Debug>(value: T, numbers: &mut Numbers, depth: u64, kind: Kind) {
    let text = format!("{value:?}");
    go(numbers, depth, kind);
    drop(black_box(text));
}

#[inline(always)]
fn inlined(numbers: &mut Numbers, depth: u64, kind: Kind) {
    let deeper = |numbers: &mut Numbers| go(numbers, depth, kind);
    deeper(numbers);
    black_box(depth);
}

#[inline(never)]
fn big_frame<const SIZE: usize>(numbers: &mut Numbers, depth: u64, kind: Kind) {
    let mut frame = [0_u8; SIZE];
    black_box(&mut frame);
    go(numbers, depth, kind);
    black_box(&mut frame);
}

/// A value whose alignment forces its function to align the frame.
#[repr(align(64))]
struct Aligned([u8; 64]);

#[inline(never)]
fn aligned(numbers: &mut Numbers, depth: u64, kind: Kind) {
    let mut value = Aligned([1; 64]);
    black_box(&mut value.0);
    go(numbers, depth, kind);
    black_box(&mut value.0);
}

/// A guard that takes a stack while its function is unwound.
struct OnDrop<'n>(&'n mut Numbers, u64);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        go(self.0, self.1, Kind::InPanic);
    }
}

#[inline(never)]
fn panics(numbers: &mut Numbers, depth: u64) {
    let below = numbers.below(4);
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let guard = OnDrop(numbers, depth / 3);
        panic_below(below);
        drop(guard);
    }));
}

#[inline(never)]
fn panic_below(depth: u64) {
    if black_box(depth) == 0 {
        std::panic::panic_any(7);
    }
    panic_below(depth - 1);
    black_box(depth);
}

/// Walks deeper than the kept frames, with stacks on the way down and up.
#[inline(never)]
fn recurse(depth: u64, numbers: &mut Numbers) {
    if depth.is_multiple_of(50) {
        take(Kind::Deep);
    }
    if depth > 0 {
        recurse(depth - 1, numbers);
    } else {
        go(numbers, 2, Kind::Deep);
    }
    if depth % 50 == 7 {
        take(Kind::Deep);
    }
}

/// Makes ten blocks below this many frames.
#[inline(never)]
pub(crate) fn allocate_deep_down(depth: u64) {
    if depth > 0 {
        allocate_deep_down(depth - 1);
        black_box(depth);
        return;
    }
    for number in 0..10 {
        drop(black_box(Box::new(number)));
    }
}
