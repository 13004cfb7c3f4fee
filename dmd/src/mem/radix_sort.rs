//! Sorting by address: stable, in pages of its own, and in time that grows with the number alone.
//!
//! Lines are first put together by region of the address space, and then sorted within each, where everything is in the cache: a
//! sort digit by digit waits for memory three times as often.
#![expect(clippy::cast_possible_truncation, reason = "digits are cut out of a word")]

use super::local_interner::LocalInterner;
use super::pages::PageList;

/// What is sorted: by its first word.
type Line = [u64; 2];

/// A region has so many addresses that its lines fit into the cache.
const REGION_BITS: u32 = 21;

/// The last bits of addresses: blocks are aligned, so nearly all have the same.
const ALIGNED_BITS: u32 = 4;

/// How much of an address is one digit, where a region has many lines: all in which they mostly differ.
const BIG_DIGIT: u32 = REGION_BITS - ALIGNED_BITS;

/// The same, where it has few.
const SMALL_DIGIT: u32 = 8;

/// So many are worth a count for each value of a big digit.
const MANY: usize = 1 << 14;

/// Lines, put together by region.
pub(crate) struct ByRegion {
    lines: PageList<Line>,
    regions: Regions,
}

impl ByRegion {
    /// `None` if memory is short.
    pub(crate) fn of(lines: impl Iterator<Item = Line> + Clone) -> Option<Self> {
        let mut regions = Regions::of(lines.clone())?;
        let mut list = PageList::zeros(regions.lines)?;
        let slice = list.as_mut_slice();
        for line in lines {
            if let Some(place) = regions.place(&line) {
                slice[place] = line;
            }
        }
        Some(ByRegion { lines: list, regions })
    }

    /// By their first words; equals keep their order. Where memory is short for a second list, they come in the order of their
    /// second words instead.
    pub(crate) fn sorted(mut self) -> PageList<Line> {
        self.sorted_into_another().unwrap_or_else(|| {
            self.lines.as_mut_slice().sort_unstable();
            self.lines
        })
    }

    fn sorted_into_another(&mut self) -> Option<PageList<Line>> {
        let mut counts = PageList::<u32>::zeros(1 << BIG_DIGIT)?;
        let mut list = PageList::zeros(self.regions.lines)?;
        let (from, to) = (self.lines.as_mut_slice(), list.as_mut_slice());
        for (start, end) in self.regions.ends() {
            sort_region(&mut from[start..end], &mut to[start..end], counts.as_mut_slice());
        }
        Some(list)
    }
}

/// Sorts what is in `from` into `to`.
fn sort_region(from: &mut [Line], to: &mut [Line], counts: &mut [u32]) {
    let low = from.iter().map(|line| line[0]).min().unwrap_or(0);
    let bits = from.iter().fold(0, |bits, line| bits | (line[0] - low));
    let first = bits.trailing_zeros();
    if from.len() >= MANY && first >= ALIGNED_BITS {
        return pass(from, to, (low, first, BIG_DIGIT), counts);
    }
    let (mut from, mut to, mut is_there) = (from, to, false);
    for shift in (first..u64::BITS - bits.leading_zeros()).step_by(SMALL_DIGIT as usize) {
        pass(from, to, (low, shift, SMALL_DIGIT), counts);
        (from, to) = (to, from);
        is_there = !is_there;
    }
    if !is_there {
        to.copy_from_slice(from);
    }
}

/// Sorts by one digit: so many bits from that one on.
fn pass(from: &[Line], to: &mut [Line], (low, shift, bits): (u64, u32, u32), counts: &mut [u32]) {
    let digit = |line: &Line| ((line[0] - low) >> shift) as usize & ((1 << bits) - 1);
    let places = &mut counts[..1 << bits];
    places.fill(0);
    from.iter().for_each(|line| places[digit(line)] += 1);
    let mut next = 0;
    for place in &mut *places {
        next += std::mem::replace(place, next);
    }
    for line in from {
        let place = &mut places[digit(line)];
        to[*place as usize] = *line;
        *place += 1;
    }
}

/// Where the lines of each region go.
struct Regions {
    numbers: LocalInterner<usize>,
    /// By number: where the next line goes.
    next: PageList<usize>,
    /// The numbers, by address.
    order: PageList<u32>,
    /// How many lines there are in all.
    lines: usize,
}

impl Regions {
    fn of(lines: impl Iterator<Item = Line>) -> Option<Self> {
        let mut regions = Regions {
            numbers: LocalInterner::new(),
            next: PageList::new(),
            order: PageList::new(),
            lines: 0,
        };
        let Regions { numbers, next, order, .. } = &mut regions;
        for line in lines {
            let number = numbers.number(region(&line))?;
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
        regions.lines = start;
        Some(regions)
    }

    /// Where this line goes: behind the one before of its region.
    fn place(&mut self, line: &Line) -> Option<usize> {
        let number = self.numbers.find(region(line))?;
        let next = &mut self.next.as_mut_slice()[number as usize];
        *next += 1;
        Some(*next - 1)
    }

    /// Where each region begins and ends, once all its lines are there.
    fn ends(&self) -> impl Iterator<Item = (usize, usize)> {
        self.order.as_slice().iter().scan(0, |start, number| {
            let end = self.next.as_slice()[*number as usize];
            Some((std::mem::replace(start, end), end))
        })
    }
}

fn region(line: &Line) -> usize {
    (line[0] >> REGION_BITS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(keys: impl Iterator<Item = u64>) -> (Vec<Line>, Vec<Line>) {
        let lines: Vec<Line> = keys.zip(0..).map(|(key, number)| [key, number]).collect();
        let found = ByRegion::of(lines.iter().copied()).unwrap().sorted();
        let mut expected = lines;
        expected.sort_by_key(|line| line[0]);
        (found.as_slice().to_vec(), expected)
    }

    #[test]
    fn lines_are_sorted_and_equals_keep_their_order() {
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
        // Aligned, as blocks are, and some that are not among them.
        for odd in [0, 1, 8] {
            let keys = random(26).take(8 * MANY).enumerate();
            let keys = keys.map(|(index, key)| key << 4 | if index % 1000 == 7 { odd } else { 0 });
            let (found, expected) = sorted(keys);
            assert_eq!(found, expected, "with some at {odd}");
        }
        // Far from zero; in order; all the same.
        for keys in [vec![1 << 40, 1 << 46, (1 << 46) + 1, 1 << 40], vec![1, 2, 3], vec![7; 5]] {
            let (found, expected) = sorted(keys.into_iter());
            assert_eq!(found, expected);
        }
        let (found, expected) = sorted([u64::MAX, 0, u64::MAX, 1].into_iter());
        assert_eq!(found, expected);
    }
}
