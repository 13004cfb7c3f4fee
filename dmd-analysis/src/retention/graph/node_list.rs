//! Lists of nodes that are read from the beginning to the end. Each node is stored as its distance
//! from the one before: most are neighbours, and take a byte or two.

/// A list of nodes.
#[derive(Debug, Default)]
pub(crate) struct NodeList {
    /// The distances, zigzag and in base 128 with the lowest digits first. All digits but a
    /// number's last have the highest bit.
    digits: Vec<u8>,
    last: u32,
    len: usize,
}

/// A place in a list.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    digit: usize,
    /// The node before.
    last: u32,
}

impl NodeList {
    /// Adds a node at the end.
    pub(crate) fn push(&mut self, node: u32) {
        let distance = i64::from(node) - i64::from(self.last);
        let mut rest = ((distance << 1) ^ (distance >> 63)).cast_unsigned();
        while rest > 0x7f {
            self.digits.push(low_digit(rest) | 0x80);
            rest >>= 7;
        }
        self.digits.push(low_digit(rest));
        self.last = node;
        self.len += 1;
    }

    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the nodes in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        let mut place = Place::default();
        std::iter::from_fn(move || self.next(&mut place))
    }

    /// Returns the place behind the last node.
    pub(crate) fn end(&self) -> Place {
        Place { digit: self.digits.len(), last: self.last }
    }

    /// Returns the node at a place, and moves the place behind it.
    pub(crate) fn next(&self, place: &mut Place) -> Option<u32> {
        let (mut number, mut shift) = (0_u64, 0);
        loop {
            let digit = *self.digits.get(place.digit)?;
            place.digit += 1;
            number |= u64::from(digit & 0x7f) << shift;
            shift += 7;
            if digit & 0x80 == 0 {
                break;
            }
        }
        let distance = (number >> 1).cast_signed() ^ -(number & 1).cast_signed();
        // The distance of two nodes, so the sum is a node.
        place.last = u32::try_from(i64::from(place.last) + distance).unwrap_or(u32::MAX);
        Some(place.last)
    }
}

impl FromIterator<u32> for NodeList {
    fn from_iter<N: IntoIterator<Item = u32>>(nodes: N) -> Self {
        let mut list = Self::default();
        nodes.into_iter().for_each(|node| list.push(node));
        list
    }
}

/// Returns the lowest digit of a number in base 128.
fn low_digit(number: u64) -> u8 {
    number.to_le_bytes()[0] & 0x7f
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_come_back_in_their_order() {
        let nodes = [0, 1, 2, 66, 1, 5_000_000, 4_999_999, u32::MAX - 1, 0, 0, 3];
        let (before, after) = nodes.split_at(5);
        let mut list: NodeList = before.iter().copied().collect();
        let mut middle = list.end();
        after.iter().for_each(|&node| list.push(node));
        assert_eq!(list.iter().collect::<Vec<_>>(), nodes);
        let rest: Vec<u32> = std::iter::from_fn(|| list.next(&mut middle)).collect();
        assert_eq!((rest.as_slice(), list.len()), (after, nodes.len()));
    }
}
