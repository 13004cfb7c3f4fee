//! Variable-length integers: seven bits per byte, the low ones first.
#![forbid(unsafe_code)]

/// Appends `number`.
pub(crate) fn write(bytes: &mut Vec<u8>, mut number: u32) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            return bytes.push(low & 0x7f);
        }
        bytes.push(low | 0x80);
    }
}

/// Removes the next number from the front; `None` at the end or if the bytes are malformed.
pub(crate) fn read(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0;
    for shift in (0..32).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Appends numbers that never decrease, each by its distance from the one before.
pub(crate) fn write_ascending(bytes: &mut Vec<u8>, numbers: impl IntoIterator<Item = u32>) {
    let mut before = 0;
    for number in numbers {
        write(bytes, number - before);
        before = number;
    }
}

/// Removes this many ascending numbers from the front.
pub(crate) fn read_ascending(bytes: &mut &[u8], count: u32, numbers: &mut Vec<u32>) -> Option<()> {
    let mut before = 0;
    for _ in 0..count {
        before += read(bytes)?;
        numbers.push(before);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_as_few_bytes_as_they_can() {
        let table: [(u32, &[u8]); 6] = [
            (0, &[0]),
            (127, &[127]),
            (128, &[0x80, 1]),
            (16_383, &[0xff, 0x7f]),
            (16_384, &[0x80, 0x80, 1]),
            (u32::MAX, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
        ];
        for (number, written) in table {
            let mut bytes = Vec::new();
            write(&mut bytes, number);
            assert_eq!(bytes, written, "{number}");
            assert_eq!(read(&mut &*bytes), Some(number));
        }
    }

    #[test]
    fn what_ends_too_soon_is_no_number() {
        assert_eq!(read(&mut &[][..]), None);
        assert_eq!(read(&mut &[0x80][..]), None);
        assert_eq!(read(&mut &[0x80; 9][..]), None);
    }

    #[test]
    fn ascending_numbers_come_back() {
        let numbers = [0, 0, 3, 200, 100_000];
        let mut bytes = Vec::new();
        write_ascending(&mut bytes, numbers);
        assert_eq!(bytes.len(), 1 + 1 + 1 + 2 + 3);
        let mut read = Vec::new();
        assert_eq!(read_ascending(&mut &*bytes, 5, &mut read), Some(()));
        assert_eq!(read, numbers);
        assert_eq!(read_ascending(&mut &*bytes, 6, &mut read), None);
    }
}
