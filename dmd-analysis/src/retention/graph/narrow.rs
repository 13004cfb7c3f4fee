//! Small numbers of nodes, in half the memory of 32-bit numbers.

use crate::retention::NONE;

/// A number for each node, or [`NONE`]. Two bytes each, until one does not fit.
#[derive(Debug)]
pub(crate) enum NarrowNumbers {
    /// [`u16::MAX`] stands for [`NONE`].
    Small(Vec<u16>),
    Large(Vec<u32>),
}

impl NarrowNumbers {
    /// Makes this many numbers: [`NONE`] each.
    pub(crate) fn new(nodes: usize) -> Self {
        Self::Small(vec![u16::MAX; nodes])
    }

    /// Returns the number of a node.
    #[inline]
    pub(crate) fn get(&self, node: u32) -> u32 {
        match self {
            Self::Small(numbers) => wide(numbers[node as usize]),
            Self::Large(numbers) => numbers[node as usize],
        }
    }

    /// Sets the number of a node.
    #[inline]
    pub(crate) fn set(&mut self, node: u32, number: u32) {
        match self {
            Self::Small(numbers) => match u16::try_from(number) {
                _ if number == NONE => numbers[node as usize] = u16::MAX,
                Ok(small) if small < u16::MAX => numbers[node as usize] = small,
                _ => {
                    let mut numbers: Vec<u32> = numbers.iter().copied().map(wide).collect();
                    numbers[node as usize] = number;
                    *self = Self::Large(numbers);
                }
            },
            Self::Large(numbers) => numbers[node as usize] = number,
        }
    }
}

fn wide(number: u16) -> u32 {
    if number == u16::MAX { NONE } else { number.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_kept_whatever_their_size() {
        let all =
            |numbers: &NarrowNumbers| (0..4).map(|node| numbers.get(node)).collect::<Vec<_>>();
        let mut numbers = NarrowNumbers::new(4);
        numbers.set(1, 0);
        numbers.set(2, u32::from(u16::MAX) - 1);
        numbers.set(3, 7);
        numbers.set(3, NONE);
        assert_eq!(all(&numbers), [NONE, 0, 65_534, NONE]);
        assert!(matches!(numbers, NarrowNumbers::Small(_)));
        for (node, number) in [(0, 65_535), (3, NONE - 1), (1, NONE)] {
            numbers.set(node, number);
        }
        assert_eq!(all(&numbers), [65_535, NONE, 65_534, NONE - 1]);
    }
}
