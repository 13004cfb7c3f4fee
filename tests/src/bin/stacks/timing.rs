//! Times stacks of 36 frames at the end of random paths, each taken four times.

use std::hint::black_box;
use std::io::{self, Write};
use std::time::Duration;

use memreport_workload::Numbers;

use crate::foreign::{self, processor_time};

const PATHS: usize = 512;
const TAKEN: u32 = 4;
const DEPTH: u32 = 25;

/// The function at the end of a path.
type Leaf = fn(&mut [usize]) -> usize;

/// A step on a path.
type Way = fn(u64, u32, Leaf, &mut [usize]) -> usize;

/// Prints, for each round, the nanoseconds of a stack by the hook's unwinder and by bare frame
/// pointers.
pub(crate) fn run(rounds: usize, out: &mut dyn Write) -> io::Result<()> {
    let count: Leaf = |frames| dmd::__private::stack(frames).map_or(0, |(length, _)| length);
    // The hook does not copy them.
    let take: Leaf = |_| dmd::__private::stack(&mut []).map_or(0, |(length, _)| length);
    let stacks = PATHS as f64 * f64::from(TAKEN);
    // The first rounds fill caches.
    let frames: usize = (0..2).map(|_| descend_all(1, count).1).sum();
    writeln!(out, "frames: {:.1}", frames as f64 / 2.0 / stacks)?;
    for round in 0..rounds {
        let seed = round as u64 * 7919 + 1;
        let nothing = descend_all(seed, |_| 0).0;
        let cost = |leaf: Leaf| descend_all(seed, leaf).0.saturating_sub(nothing).as_nanos() as f64;
        let (taken, least) = (cost(take), cost(foreign::along_frame_pointers));
        writeln!(out, "{:.2} {:.2}", taken / stacks, least / stacks)?;
    }
    Ok(())
}

fn descend_all(seed: u64, leaf: Leaf) -> (Duration, usize) {
    let mut numbers = Numbers::new(seed);
    let paths: Vec<u64> = (0..PATHS).map(|_| numbers.below(1 << 31)).collect();
    let mut frames = [0; 256];
    let before = processor_time();
    let all = paths.iter().map(|path| turn(*path, DEPTH, leaf, &mut frames)).sum();
    (processor_time().saturating_sub(before), all)
}

#[inline(always)]
fn turn(path: u64, depth: u32, leaf: Leaf, frames: &mut [usize]) -> usize {
    if depth == 0 {
        return (0..TAKEN).map(|_| black_box(leaf)(frames)).sum();
    }
    let ways: [Way; 4] = [left, right, left, middle];
    black_box(ways[(path & 3) as usize])(path >> 1, depth - 1, leaf, frames)
}

#[inline(never)]
fn left(path: u64, depth: u32, leaf: Leaf, frames: &mut [usize]) -> usize {
    black_box(turn(path, depth, leaf, frames))
}

#[inline(never)]
fn right(path: u64, depth: u32, leaf: Leaf, frames: &mut [usize]) -> usize {
    let local = [path, u64::from(depth), 3];
    black_box(&local);
    black_box(turn(path, depth, leaf, frames))
}

#[inline(never)]
fn middle(path: u64, depth: u32, leaf: Leaf, frames: &mut [usize]) -> usize {
    let local = [path; 30];
    black_box(&local);
    black_box(turn(path, depth, leaf, frames))
}
