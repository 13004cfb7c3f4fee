//! Measures compressed bitmaps of `roaring`. *Exact with the tracker*; without it the sizes of the
//! containers in their statistics.
#![expect(unsafe_code, reason = "vouches for what a bitmap consists of")]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem::offset_of;

use roaring::{RoaringBitmap, RoaringTreemap};

use super::btree::{Walk, add_lone_leaf};
use crate::tracker::words::words_of;
use crate::{MallocSizeOf, Ops};

/// A copy of a bitmap's container, for 2^16 numbers.
#[expect(dead_code, reason = "only its size and where its key lies is of interest")]
struct Container {
    key: u16,
    store: Store,
}

#[expect(dead_code, reason = "only its size is of interest")]
enum Store {
    Array(Vec<u16>),
    Bits { number: u64, bits: Box<[u64; 1024]> },
    Runs(Vec<[u16; 2]>),
}

/// The index of the container's word that consists of the key and padding.
const KEY: usize = offset_of!(Container, key) / size_of::<usize>();

impl MallocSizeOf for RoaringBitmap {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let statistics = self.statistics();
        let containers = usize::try_from(statistics.n_containers).unwrap_or(0);
        if !ops.finds_enclosing_blocks() {
            let bits = u64::from(statistics.n_bitset_containers) * size_of::<[u64; 1024]>() as u64;
            // The statistics count each number of an array as twice its size.
            let numbers = statistics.n_bytes_array_containers / 2;
            let bytes = bits + numbers + statistics.n_bytes_run_containers;
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            return ops.computed(bytes.saturating_add(containers * size_of::<Container>()));
        }
        let per_container = size_of::<Container>() / size_of::<usize>();
        // SAFETY: a bitmap is a vector of containers, and each is a pointer and two small numbers.
        unsafe {
            ops.blocks_behind_words(&words_of(self), |words| {
                // Spare capacity has no containers yet.
                let words = words.take(containers * per_container).enumerate();
                let words = words.filter(|(index, _)| index % per_container != KEY);
                for (_, word) in words {
                    ops.block_by_words([word], |offset, _| offset == 0);
                }
            });
        };
    }
}

impl MallocSizeOf for RoaringTreemap {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        add_lone_leaf::<u32, RoaringBitmap, Self>(ops, self, self.bitmaps().count());
        ops.add_with(self, |map, ops| {
            let mut walk = Walk::default();
            for (_, bitmap) in map.bitmaps() {
                let entry = core::ptr::from_ref(bitmap).cast();
                walk.add_node_at::<u32, RoaringBitmap>(ops, entry, size_of::<RoaringBitmap>());
                bitmap.add_size_of_excluding_this(ops);
            }
            walk.count_last(ops);
        });
    }
}
