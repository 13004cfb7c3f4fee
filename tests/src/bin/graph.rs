//! A heap in the shape of a graph: `graph SHAPE BLOCKS REPORT` allocates blocks that point at each
//! other, and saves a report.

use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;
use std::process;

use memreport_workload::Numbers;

dmd::global_allocator!();

/// The shapes of the graph.
#[derive(Clone, Copy)]
enum Shape {
    /// Each block points at the next.
    Chain,
    /// The first block points at all others.
    Star,
    /// Each block points at the next two: deep, with many paths to every block.
    Ladder,
    /// Each block points at the next and at the one before.
    Ring,
    /// Each block points at up to eight others.
    Random,
}

impl Shape {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "chain" => Self::Chain,
            "star" => Self::Star,
            "ladder" => Self::Ladder,
            "ring" => Self::Ring,
            "random" => Self::Random,
            _ => return None,
        })
    }

    /// Returns the blocks that a block points at.
    fn links(self, block: usize, blocks: usize, random: &mut Numbers) -> Vec<usize> {
        match self {
            Self::Chain => (block + 1..blocks).take(1).collect(),
            Self::Star if block == 0 => (1..blocks).collect(),
            Self::Star => Vec::new(),
            Self::Ladder => (block + 1..blocks).take(2).collect(),
            Self::Ring => vec![(block + 1) % blocks, (block + blocks - 1) % blocks],
            Self::Random => (0..random.index(9)).map(|_| random.index(blocks)).collect(),
        }
    }
}

/// Allocates the blocks, of two words at least, and returns the first.
fn graph(shape: Shape, blocks: usize) -> &'static [usize] {
    let mut random = Numbers::new(1);
    let links: Vec<Vec<usize>> =
        (0..blocks).map(|block| shape.links(block, blocks, &mut random)).collect();
    let words = |links: &Vec<usize>| vec![0; links.len().max(2)].leak();
    let mut all: Vec<&mut [usize]> = links.iter().map(words).collect();
    let addresses: Vec<usize> = all.iter().map(|block| block.as_ptr() as usize).collect();
    for (block, links) in all.iter_mut().zip(links) {
        for (word, link) in block.iter_mut().zip(links) {
            *word = addresses[link];
        }
    }
    all.swap_remove(0)
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut words = std::env::args_os().skip(1);
    let shape = words.next().and_then(|word| Shape::named(word.to_str()?)).ok_or("SHAPE")?;
    let blocks = words.next().and_then(|word| word.to_str()?.parse().ok()).ok_or("BLOCKS")?;
    let report = PathBuf::from(words.next().ok_or("REPORT")?);
    let first = graph(shape, blocks);
    memreport::snapshot().save(report)?;
    black_box(first);
    process::exit(0)
}
