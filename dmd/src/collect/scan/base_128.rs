//! Numbers in base 128, the lowest digit first. All digits but the last have the high bit.
#![expect(clippy::cast_possible_truncation, reason = "digits are cut out of a number")]

/// The most digits of a number.
const MAX_DIGITS: usize = 10;

/// A number in base 128.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digits {
    digits: [u8; MAX_DIGITS],
    length: usize,
}

impl Digits {
    /// Returns the digits of a number.
    #[inline]
    pub(crate) fn of(mut number: u64) -> Self {
        let mut digits = [0; MAX_DIGITS];
        let mut length = 0;
        for digit in &mut digits {
            *digit = number as u8 & 0x7f;
            length += 1;
            number >>= 7;
            if number == 0 {
                break;
            }
            *digit |= 0x80;
        }
        Digits { digits, length }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.digits.get(..self.length).unwrap_or(&self.digits)
    }
}

/// Removes a number from the front of `bytes`, and returns it; `None` if the bytes end first.
#[inline]
pub(super) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (digit, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(digit & 0x7f).checked_shl(shift)?;
        if digit & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_base_128_and_read_back() {
        let table: [(u64, &[u8]); 6] = [
            (0, &[0]),
            (127, &[127]),
            (128, &[0x80, 1]),
            (300, &[0xac, 2]),
            (1 << 63, &[128, 128, 128, 128, 128, 128, 128, 128, 128, 1]),
            (u64::MAX, &[255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
        ];
        for (number, expected) in table {
            let digits = Digits::of(number);
            assert_eq!(digits.as_bytes(), expected, "{number}");
            let followed = [expected, &[7]].concat();
            let mut bytes = &followed[..];
            assert_eq!((take(&mut bytes), bytes), (Some(number), &[7][..]));
            assert_eq!(take(&mut &expected[..expected.len() - 1]), None, "{number}");
        }
    }
}
