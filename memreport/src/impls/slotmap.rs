//! Maps of `slotmap`. *Exact with the tracker*; without it the slots that the capacity takes, short of what the allocator rounds up.

use core::mem::ManuallyDrop;

use slotmap::{DenseSlotMap, Key, SecondaryMap, SlotMap};

use crate::words::words_of;
use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

owns_nothing!(slotmap::DefaultKey, slotmap::KeyData);

/// What a slot holds: a value, or a link to a free slot.
union Content<V> {
    _value: ManuallyDrop<V>,
    _free: u32,
}

macro_rules! maps {
    ($($map:ident of $slot:ty),* $(,)?) => {$(
        impl<K: Key, V> MallocShallowSizeOf for $map<K, V> {
            fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
                let bytes = (self.capacity() + 1).saturating_mul(size_of::<$slot>());
                ops.blocks_by_words(words_of(self), |offset, _| offset == 0, bytes);
            }
        }

        impl<K: Key, V: MallocSizeOf> MallocSizeOf for $map<K, V> {
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                ops.shallow(self);
                ops.add_with(self, |map, ops| {
                    map.values().for_each(|value| value.add_size_of_excluding_this(ops));
                });
            }
        }
    )*};
}

maps!(
    SlotMap of (Content<V>, u32),
    SecondaryMap of Option<(core::num::NonZeroU32, V)>,
    DenseSlotMap of (K, V, [u32; 2]),
);
