//! Addresses of blocks in four bytes each.

use std::num::NonZeroU64;

use rustc_hash::FxHashMap;

/// The addresses of blocks by their indices, as distances from the first one of each group.
#[derive(Debug, Clone, Default)]
pub(super) struct Addresses {
    /// The address from which those of a group of [`GROUP`] blocks are measured.
    bases: Vec<u64>,
    /// By block: the distance of its address, [`UNKNOWN`] or [`FAR`]. Blocks behind the end have no
    /// address.
    distances: Vec<u32>,
    /// The addresses that are too far away.
    far: FxHashMap<usize, NonZeroU64>,
}

/// The number of blocks for each address that is kept whole.
const GROUP: usize = 64;

/// The distance that stands for an address that is not known.
const UNKNOWN: u32 = u32::MAX;

/// The distance that stands for an address in [`Addresses::far`].
const FAR: u32 = u32::MAX - 1;

/// The distance of an address that equals the base: smaller ones lie before it.
const MIDDLE: u64 = 1 << 31;

impl Addresses {
    /// Returns the address of the block with this index, if it is known.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<NonZeroU64> {
        match *self.distances.get(index)? {
            UNKNOWN => None,
            FAR => self.far.get(&index).copied(),
            distance => {
                let from = self.bases[index / GROUP].wrapping_sub(MIDDLE);
                NonZeroU64::new(from.wrapping_add(distance.into()))
            }
        }
    }

    /// Stores the address of a block. All indices come once, in ascending order.
    pub(super) fn push(&mut self, index: usize, address: Option<NonZeroU64>) {
        let Some(address) = address else { return };
        self.distances.resize(index, UNKNOWN);
        let group = index / GROUP;
        if self.bases.len() <= group {
            self.bases.resize(group + 1, address.get());
        }
        let distance = address.get().wrapping_sub(self.bases[group]).wrapping_add(MIDDLE);
        let distance = u32::try_from(distance).unwrap_or(FAR).min(FAR);
        if distance == FAR {
            self.far.insert(index, address);
        }
        self.distances.push(distance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_as_they_were_stored_whatever_lies_between_them() {
        let base = 0x7f00_0000_0000_u64;
        let near = [0, 8, MIDDLE - 3, MIDDLE - 2, MIDDLE - 1, MIDDLE, u64::from(u32::MAX), 1 << 40];
        let around = near.iter().flat_map(|far| [base + far, base - far]);
        let ends = [1, 16, u64::MAX, u64::MAX - MIDDLE];
        let values: Vec<Option<NonZeroU64>> =
            around.chain(ends).map(NonZeroU64::new).chain([None, None]).collect();
        // Each of them begins a group at some time, and some follow many without an address.
        for first in 0..values.len() {
            let mut addresses = Addresses::default();
            let of = |index: usize| match index {
                0..5 | 200..400 => None,
                _ => values[(first + index * 7) % values.len()],
            };
            (0..1000).for_each(|index| addresses.push(index, of(index)));
            (0..1000).for_each(|index| assert_eq!(addresses.get(index), of(index), "{index}"));
            assert_eq!(addresses.get(1000), None);
            assert_eq!(addresses.bases.len(), 1000_usize.div_ceil(GROUP));
        }
    }

    #[test]
    fn blocks_without_addresses_take_no_memory() {
        let mut addresses = Addresses::default();
        (0..1000).for_each(|index| addresses.push(index, None));
        assert_eq!((addresses.get(7), addresses.distances.capacity()), (None, 0));
    }
}
