//! Stable sorting of pairs by their first word, an address, in linear time and in pages of its own.
//!
//! Pairs are first grouped by region of the address space. Each region is then sorted within the
//! cache. A plain radix sort, digit by digit over all pairs, takes three times as many cache
//! misses.
#![expect(clippy::cast_possible_truncation, reason = "digits are cut out of a word")]

use std::ops::Range;

use super::local_interner::LocalInterner;
use super::pages::PageList;

/// A pair: the key, an address, and a value.
type Pair = [u64; 2];

/// The size of a region: its pairs fit into the cache.
const REGION_BITS: u32 = 21;

/// The low bits of an address. Blocks are aligned, so these bits are nearly always equal.
const ALIGNED_BITS: u32 = 4;

/// The width of the digit for regions with many pairs: all bits in which their keys usually differ.
const BIG_DIGIT: u32 = REGION_BITS - ALIGNED_BITS;

/// The width of a digit for regions with few pairs.
const SMALL_DIGIT: u32 = 8;

/// The number of pairs from which a big digit pays for its table of counts.
const MANY: usize = 1 << 14;

/// Pairs grouped by region.
pub(crate) struct ByRegion {
    pairs: PageList<Pair>,
    regions: Regions,
}

impl ByRegion {
    /// Groups pairs by region. Returns `None` if memory is short.
    pub(crate) fn group(pairs: impl Iterator<Item = Pair> + Clone) -> Option<Self> {
        let mut regions = Regions::count(pairs.clone())?;
        let mut list = PageList::zeros(regions.pairs)?;
        let slice = list.as_mut_slice();
        for pair in pairs {
            if let Some(place) = regions.place(&pair) {
                slice[place] = pair;
            }
        }
        Some(ByRegion { pairs: list, regions })
    }

    /// Sorts by the first words, stably. If memory is short for a copy, it sorts equal keys by
    /// their second words instead.
    pub(crate) fn sorted(mut self) -> PageList<Pair> {
        self.sort_into_copy().unwrap_or_else(|| {
            self.pairs.as_mut_slice().sort_unstable();
            self.pairs
        })
    }

    fn sort_into_copy(&mut self) -> Option<PageList<Pair>> {
        let mut counts = PageList::<u32>::zeros(1 << BIG_DIGIT)?;
        let mut list = PageList::zeros(self.regions.pairs)?;
        let (from, to) = (self.pairs.as_mut_slice(), list.as_mut_slice());
        for range in self.regions.ranges() {
            sort_region(&mut from[range.clone()], &mut to[range], counts.as_mut_slice());
        }
        Some(list)
    }
}

/// Sorts the pairs of a region from `from` into `to`.
fn sort_region(from: &mut [Pair], to: &mut [Pair], counts: &mut [u32]) {
    let low = from.iter().map(|pair| pair[0]).min().unwrap_or(0);
    let bits = from.iter().fold(0, |bits, pair| bits | (pair[0] - low));
    if bits == 0 {
        // All keys are equal.
        return to.copy_from_slice(from);
    }
    let first = bits.trailing_zeros();
    if from.len() >= MANY && first >= ALIGNED_BITS {
        return sort_by_digit(from, to, Digit { low, shift: first, bits: BIG_DIGIT }, counts);
    }
    let (mut from, mut to, mut is_in_to) = (from, to, false);
    for shift in (first..u64::BITS - bits.leading_zeros()).step_by(SMALL_DIGIT as usize) {
        sort_by_digit(from, to, Digit { low, shift, bits: SMALL_DIGIT }, counts);
        (from, to) = (to, from);
        is_in_to = !is_in_to;
    }
    if !is_in_to {
        to.copy_from_slice(from);
    }
}

/// A digit of a key: `bits` bits from `shift` on, of the distance to `low`.
#[derive(Clone, Copy)]
struct Digit {
    low: u64,
    shift: u32,
    bits: u32,
}

/// Sorts by one digit: a counting sort.
fn sort_by_digit(from: &[Pair], to: &mut [Pair], digit: Digit, counts: &mut [u32]) {
    let Digit { low, shift, bits } = digit;
    let digit = |pair: &Pair| ((pair[0] - low) >> shift) as usize & ((1 << bits) - 1);
    let places = &mut counts[..1 << bits];
    places.fill(0);
    from.iter().for_each(|pair| places[digit(pair)] += 1);
    let mut next = 0;
    for place in &mut *places {
        next += std::mem::replace(place, next);
    }
    for pair in from {
        let place = &mut places[digit(pair)];
        to[*place as usize] = *pair;
        *place += 1;
    }
}

/// The regions of the pairs, and the place of each in the grouped list.
struct Regions {
    numbers: LocalInterner<usize>,
    /// The index of the next pair, by the number of the region.
    next: PageList<usize>,
    /// The numbers of the regions, in the order of addresses.
    order: PageList<u32>,
    /// The number of pairs.
    pairs: usize,
}

impl Regions {
    fn count(pairs: impl Iterator<Item = Pair>) -> Option<Self> {
        let mut regions = Regions {
            numbers: LocalInterner::new(),
            next: PageList::new(),
            order: PageList::new(),
            pairs: 0,
        };
        let Regions { numbers, next, order, .. } = &mut regions;
        for pair in pairs {
            let number = numbers.intern(region(&pair))?;
            if number as usize == next.as_slice().len() && !(next.push(0) && order.push(number)) {
                return None;
            }
            next.as_mut_slice()[number as usize] += 1;
        }
        order.as_mut_slice().sort_unstable_by_key(|number| numbers.keys()[*number as usize]);
        let mut start = 0;
        for number in order.as_slice() {
            start += std::mem::replace(&mut next.as_mut_slice()[*number as usize], start);
        }
        regions.pairs = start;
        Some(regions)
    }

    /// Returns the index for this pair: after the previous pair of its region.
    fn place(&mut self, pair: &Pair) -> Option<usize> {
        let number = self.numbers.find(region(pair))?;
        let next = &mut self.next.as_mut_slice()[number as usize];
        *next += 1;
        Some(*next - 1)
    }

    /// Returns the range of each region, once all its pairs are placed.
    fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        self.order.as_slice().iter().scan(0, |start, number| {
            let end = self.next.as_slice()[*number as usize];
            Some(std::mem::replace(start, end)..end)
        })
    }
}

fn region(pair: &Pair) -> usize {
    (pair[0] >> REGION_BITS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(keys: impl Iterator<Item = u64>) -> (Vec<Pair>, Vec<Pair>) {
        let pairs: Vec<Pair> = keys.zip(0..).map(|(key, number)| [key, number]).collect();
        let found = ByRegion::group(pairs.iter().copied()).unwrap().sorted();
        let mut expected = pairs;
        expected.sort_by_key(|pair| pair[0]);
        (found.as_slice().to_vec(), expected)
    }

    #[test]
    fn pairs_are_sorted_stably() {
        let random = |bits: u32| {
            let mut state = 1_u64;
            std::iter::repeat_with(move || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                state >> (64 - bits)
            })
        };
        for bits in [1, 3, 11, 12, 30, 47, 63] {
            for length in [0, 1, 2, 100, 3000, 3 * MANY] {
                let (found, expected) = sorted(random(bits).take(length));
                assert_eq!(found, expected, "{length} numbers of {bits} bits");
            }
        }
        // Aligned, as blocks are, and a few that are not.
        for odd in [0, 1, 8] {
            let keys = random(26).take(8 * MANY).enumerate();
            let keys = keys.map(|(index, key)| key << 4 | if index % 1000 == 7 { odd } else { 0 });
            let (found, expected) = sorted(keys);
            assert_eq!(found, expected, "with some at {odd}");
        }
        // Far from zero; sorted; all equal.
        for keys in [
            vec![1 << 40, 1 << 46, (1 << 46) + 1, 1 << 40],
            vec![1, 2, 3],
            vec![7; 5],
            vec![7; MANY],
        ] {
            let (found, expected) = sorted(keys.into_iter());
            assert_eq!(found, expected);
        }
        let (found, expected) = sorted([u64::MAX, 0, u64::MAX, 1].into_iter());
        assert_eq!(found, expected);
    }
}
