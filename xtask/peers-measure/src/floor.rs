//! The floor: each structure measured by code written for it alone, with one call of the allocator
//! per block.

use crate::data::{Map, Node, Ordered, Owners};

/// A structure that can be measured without any crate.
pub trait ByHand {
    /// Returns the bytes of the blocks with a reachable start: not those of a hash map's table or
    /// an ordered map's nodes.
    fn by_hand(&self) -> usize;
}

fn usable<T>(start: *const T, capacity: usize) -> usize {
    if capacity == 0 {
        return 0;
    }
    // SAFETY: callers pass the starts of live blocks of the global allocator, which is the
    // system's.
    unsafe { libc::malloc_usable_size(start.cast_mut().cast()) }
}

fn text(text: &String) -> usize {
    usable(text.as_ptr(), text.capacity())
}

impl ByHand for Map {
    fn by_hand(&self) -> usize {
        let of = |(key, words): (&String, &Vec<String>)| {
            let own = usable(words.as_ptr(), words.capacity());
            text(key) + own + words.iter().map(text).sum::<usize>()
        };
        self.iter().map(of).sum()
    }
}

impl ByHand for Node {
    fn by_hand(&self) -> usize {
        let below = |node: &Node| usable(node, 1) + node.by_hand();
        let sides = [&self.left, &self.right];
        text(&self.name) + sides.map(|side| side.as_deref().map_or(0, below)).iter().sum::<usize>()
    }
}

impl ByHand for Ordered {
    fn by_hand(&self) -> usize {
        self.values().map(|value| usable(value.as_ptr(), value.capacity())).sum()
    }
}

impl ByHand for Owners {
    fn by_hand(&self) -> usize {
        let mut met = std::collections::HashSet::new();
        let of = |owner: &std::sync::Arc<crate::data::Leaf>| {
            let start = std::sync::Arc::as_ptr(owner).cast::<[usize; 2]>().wrapping_sub(1);
            if met.insert(start) { usable(start, 1) + text(&owner.name) } else { 0 }
        };
        usable(self.as_ptr(), self.capacity()) + self.iter().map(of).sum::<usize>()
    }
}
