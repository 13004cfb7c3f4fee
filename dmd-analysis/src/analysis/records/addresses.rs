//! Addresses of blocks, packed: a large scan has many millions of them.

/// A list of addresses, as the distance of each from the one before. Blocks that lie near each
/// other take one to three bytes each.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Addresses {
    /// The distances, each as a number in base 128 with the lowest digit first. Their lowest bit is
    /// the sign.
    bytes: Vec<u8>,
    last: u64,
}

/// A place in a list.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AddressPlace {
    byte: usize,
    /// The address before.
    before: u64,
}

/// The bit of a digit that another one follows.
const MORE: u8 = 1 << 7;

impl Addresses {
    /// Returns whether there is no address.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the addresses in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        let mut place = AddressPlace::default();
        std::iter::from_fn(move || self.next(&mut place))
    }

    /// Returns the place behind the last address.
    pub(crate) fn end(&self) -> AddressPlace {
        AddressPlace { byte: self.bytes.len(), before: self.last }
    }

    /// Returns the address at a place, and moves the place behind it.
    pub(crate) fn next(&self, place: &mut AddressPlace) -> Option<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let digit = *self.bytes.get(place.byte)?;
            place.byte += 1;
            number |= u64::from(digit & !MORE) << shift;
            shift += 7;
            if digit & MORE == 0 {
                break;
            }
        }
        let distance = (number >> 1) ^ (number & 1).wrapping_neg();
        place.before = place.before.wrapping_add(distance);
        Some(place.before)
    }

    pub(crate) fn push(&mut self, address: u64) {
        let distance = address.wrapping_sub(self.last);
        self.last = address;
        // All bits are inverted if the highest is set, which becomes the lowest.
        let mut number = (distance << 1) ^ (distance >> 63).wrapping_neg();
        loop {
            let digit = number.to_le_bytes()[0] & !MORE;
            number >>= 7;
            if number == 0 {
                return self.bytes.push(digit);
            }
            self.bytes.push(digit | MORE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_any_order_are_as_they_were_added() {
        let added = [0x1000, 0x1010, 0x1050, 0x1000, 0, u64::MAX, 1 << 63, 0, 0x7f, 0x7f, 0x40];
        let mut addresses = Addresses::default();
        assert!(addresses.is_empty());
        for address in added {
            addresses.push(address);
        }
        assert!(!addresses.is_empty());
        assert_eq!(addresses.iter().collect::<Vec<_>>(), added);
    }

    #[test]
    fn neighbours_take_two_bytes_each() {
        let mut addresses = Addresses::default();
        for block in 0..1_000 {
            addresses.push(0x7f00_0000_0000 + block * 112);
        }
        assert_eq!(addresses.bytes.len(), 7 + 999 * 2);
    }
}
