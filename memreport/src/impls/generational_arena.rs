//! Measures arenas of `generational-arena`. *Exact with the tracker*; without it the entries of the
//! capacity.

use generational_arena::{Arena, Index};

use crate::tracker::words::words_of;
use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

owns_nothing!(Index);

/// A copy of the arena's entry.
#[expect(dead_code, reason = "only its size is of interest")]
enum Entry<T> {
    Free { next_free: Option<usize> },
    Occupied { generation: u64, value: T },
}

impl<T> MallocShallowSizeOf for Arena<T> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let bytes = self.capacity().saturating_mul(size_of::<Entry<T>>());
        // Only a full arena has no free entry. The word of its number is then left over from other
        // values, and may point at a block of another arena.
        let full =
            (self.len() == self.capacity() && size_of::<T>() > 0).then(|| self.iter().next());
        if let Some((_, value)) = full.flatten() {
            ops.enclosing_block(value, bytes);
            return;
        }
        ops.blocks_by_words(
            words_of(self),
            |offset, requested| (offset, requested) == (0, bytes),
            bytes,
        );
    }
}

impl<T: MallocSizeOf> MallocSizeOf for Arena<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
        ops.add_with(self, |arena, ops| {
            for (_, value) in arena {
                value.add_size_of_excluding_this(ops);
            }
        });
    }
}
