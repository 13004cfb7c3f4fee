//! Measures maps of `slotmap`. *Exact with the tracker*; without it the slots of the capacity.
#![expect(deprecated, reason = "programs still have hop slot maps")]

use core::mem::ManuallyDrop;

#[cfg(feature = "std")]
use slotmap::SparseSecondaryMap;
use slotmap::{DenseSlotMap, HopSlotMap, Key, SecondaryMap, SlotMap};

#[cfg(feature = "std")]
use super::table::{add_table, table_size};
use crate::tracker::words::words_of;
use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

owns_nothing!(slotmap::DefaultKey, slotmap::KeyData);

/// A copy of a slot's content: a value, or a link to a free slot.
union Content<V> {
    _value: ManuallyDrop<V>,
    _free: u32,
}

/// A copy of a slot's content, if the link is to a run of free slots.
union HopContent<V> {
    _value: ManuallyDrop<V>,
    _free: [u32; 3],
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
    HopSlotMap of (HopContent<V>, u32),
);

/// A copy of an entry of the hash map of sparse slots: the number, a version, and the value.
#[cfg(feature = "std")]
type Sparse<V> = (u32, (u32, V));

#[cfg(feature = "std")]
impl<K: Key, V, S: core::hash::BuildHasher> MallocShallowSizeOf for SparseSecondaryMap<K, V, S> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        let entry = self.values().next().map(|value| core::ptr::from_ref(value).cast());
        add_table::<Sparse<V>, Self>(ops, self, entry, table_size::<Sparse<V>>(self.capacity()));
    }
}

#[cfg(feature = "std")]
impl<K: Key, V: MallocSizeOf, S: core::hash::BuildHasher> MallocSizeOf
    for SparseSecondaryMap<K, V, S>
{
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
        ops.add_with(self, |map, ops| {
            map.values().for_each(|value| value.add_size_of_excluding_this(ops));
        });
    }
}
