//! The four structures that are measured, of known shape and the same for every crate. Each calls a
//! function when half of its elements are built.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use allocative::Allocative;
use deepsize::DeepSizeOf;
use get_size2::GetSize;
use mem_dbg::MemSize;
use memreport::MallocSizeOf;

/// A map of 100,000 keys, each with a few words.
pub type Map = HashMap<String, Vec<String>>;

/// A node of a tree of a million nodes, sorted by name.
#[derive(Allocative, DeepSizeOf, GetSize, MallocSizeOf)]
pub struct Node {
    /// A name of about ten bytes.
    pub name: String,
    /// The nodes with smaller names.
    pub left: Option<Box<Node>>,
    /// The nodes with larger names.
    pub right: Option<Box<Node>>,
}

/// An ordered map of 500,000 keys, inserted in random order, each with a few bytes.
pub type Ordered = BTreeMap<u64, Vec<u8>>;

/// 500,000 `Arc`s to half as many values.
pub type Owners = Vec<Arc<Leaf>>;

/// The value of an `Arc`.
#[derive(Allocative, DeepSizeOf, GetSize, MallocSizeOf, MemSize, datasize::DataSize)]
pub struct Leaf {
    /// A number.
    pub number: u64,
    /// A name of about thirty bytes.
    pub name: String,
}

/// Random numbers that are the same in every run.
pub struct Numbers(u64);

impl Numbers {
    /// Returns the generator at the beginning of its sequence.
    pub fn new() -> Self {
        Numbers(0x9e37_79b9_7f4a_7c15)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn text(&mut self, least: u64, most: u64) -> String {
        let length = least + self.below(most - least);
        (0..length).map(|_| char::from(b'a' + (self.below(26) as u8))).collect()
    }
}

/// Returns the numbers of elements, and calls a function at half of them.
fn halves(count: usize, at_half: fn()) -> impl Iterator<Item = usize> {
    (0..count).inspect(move |index| {
        if *index == count / 2 {
            at_half();
        }
    })
}

/// Returns the map.
pub fn map(scale: usize, at_half: fn()) -> Map {
    let mut numbers = Numbers::new();
    let keys = 100_000 / scale;
    let words = |numbers: &mut Numbers| (0..5).map(|_| numbers.text(4, 40)).collect();
    let entry = |key| (format!("key {key}"), words(&mut numbers));
    halves(keys, at_half).map(entry).collect()
}

/// Returns the tree; names are inserted in random order.
pub fn tree(scale: usize, at_half: fn()) -> Node {
    let mut numbers = Numbers::new();
    let node = |name| Node { name, left: None, right: None };
    let mut root = node(numbers.text(8, 16));
    for _ in halves(1_000_000 / scale, at_half).skip(1) {
        let name = numbers.text(8, 16);
        let mut at = &mut root;
        loop {
            let side = if name < at.name { &mut at.left } else { &mut at.right };
            match side {
                Some(next) => at = next,
                None => break *side = Some(Box::new(node(name))),
            }
        }
    }
    root
}

/// Returns the ordered map.
pub fn ordered(scale: usize, at_half: fn()) -> Ordered {
    let mut numbers = Numbers::new();
    let entry = |_| {
        let length = 1 + numbers.below(60);
        (numbers.next(), vec![7; length as usize])
    };
    halves(500_000 / scale, at_half).map(entry).fold(BTreeMap::new(), |mut map, (key, value)| {
        map.insert(key, value);
        map
    })
}

/// Returns the owners.
pub fn owners(scale: usize, at_half: fn()) -> Owners {
    let mut numbers = Numbers::new();
    let mut owners: Owners = Vec::new();
    for number in halves(250_000 / scale, at_half) {
        let leaf = Arc::new(Leaf { number: number as u64, name: numbers.text(4, 40) });
        owners.push(Arc::clone(&leaf));
        owners.push(leaf);
    }
    // The two owners of a value lie far apart.
    for index in (1..owners.len()).rev() {
        owners.swap(index, numbers.below(index as u64 + 1) as usize);
    }
    owners
}
