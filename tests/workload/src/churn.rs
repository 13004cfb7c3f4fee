//! Replaces blocks of many sizes at random, deep below `main`: the worst case of a tracker that
//! takes a stack for each.

use std::hint::black_box;

use crate::Numbers;

/// From 16 to 2896 bytes, each √2 times the one before.
const SIZES: [usize; 16] =
    [16, 23, 32, 45, 64, 91, 128, 181, 256, 362, 512, 724, 1024, 1448, 2048, 2896];

/// The number of calls between the caller and the replacements; with those around them a stack has
/// about 30 frames.
const DEPTH: u32 = 24;

/// The number of paths to the replacements, unless another is wanted.
pub(crate) const PATHS: usize = 512;

/// The number of blocks replaced at the end of each path.
const PER_PATH: u32 = 4;

/// The live blocks and the random numbers. For each replaced block, `IDLE` steps of idle work are
/// done.
pub(crate) struct Heap<const IDLE: u32> {
    blocks: Vec<Vec<u8>>,
    paths: Vec<u64>,
    numbers: Numbers,
}

impl<const IDLE: u32> Heap<IDLE> {
    /// Returns a heap of that many blocks, which are replaced at the end of that many paths.
    pub(crate) fn new(live: usize, paths: usize, seed: u64) -> Self {
        let mut numbers = Numbers::new(seed);
        let paths = (0..paths).map(|_| numbers.word()).collect();
        let mut heap = Heap { blocks: vec![Vec::new(); live], paths, numbers };
        for slot in 0..live {
            heap.blocks[slot] = heap.block(slot);
        }
        heap
    }

    /// Replaces that many blocks. The result depends on all of them.
    pub(crate) fn churn(&mut self, operations: u64) -> u64 {
        let mut sum = 0_u64;
        for _ in 0..operations / u64::from(PER_PATH) {
            let path = self.paths[self.numbers.index(self.paths.len())];
            sum = sum.wrapping_add(go::<0, IDLE>(self, path, DEPTH));
        }
        sum
    }

    fn block(&mut self, slot: usize) -> Vec<u8> {
        let mut block = Vec::with_capacity(SIZES[self.numbers.index(SIZES.len())]);
        block.extend_from_slice(&slot.to_ne_bytes());
        black_box(block)
    }

    #[inline(never)]
    fn replace(&mut self) -> u64 {
        let mut sum = 0_u64;
        for _ in 0..PER_PATH {
            let slot = self.numbers.index(self.blocks.len());
            sum ^= idle::<IDLE>();
            let block = self.block(slot);
            sum = sum.wrapping_add(self.blocks[slot].capacity() as u64);
            self.blocks[slot] = block;
        }
        sum
    }
}

/// Does idle work: instructions that only compute, 14 in a step.
#[inline(always)]
fn idle<const STEPS: u32>() -> u64 {
    if STEPS == 0 {
        return 0;
    }
    let mut words = black_box([1_u64, 2, 3, 4]);
    for step in 0..u64::from(STEPS) {
        words = words.map(|word| word.rotate_left(7).wrapping_add(step));
    }
    words.into_iter().fold(0, |all, word| all ^ word)
}

/// One of four functions that call each other; the path chooses one at every step.
#[inline(never)]
fn go<const TURN: u64, const IDLE: u32>(heap: &mut Heap<IDLE>, path: u64, depth: u32) -> u64 {
    let below = match (depth, path & 3) {
        (0, _) => heap.replace(),
        (_, 0) => go::<0, IDLE>(heap, path >> 2, depth - 1),
        (_, 1) => go::<1, IDLE>(heap, path >> 2, depth - 1),
        (_, 2) => go::<2, IDLE>(heap, path >> 2, depth - 1),
        _ => go::<3, IDLE>(heap, path >> 2, depth - 1),
    };
    // Work after the call: without it the compiler would turn the call into a jump, without a
    // frame.
    black_box(below).wrapping_mul(2 * TURN + 3)
}
