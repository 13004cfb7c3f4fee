//! Damages inputs: some changes per input, of bytes, pieces, numbers and words.

use std::ops::Range;

use fastrand::Rng;

/// The largest input, in bytes.
pub const LARGEST: usize = 1 << 16;

/// Numbers at which counts and sizes overflow, and text that ends a value.
const WORDS: [&[u8]; 16] = [
    b"0",
    b"-1",
    b"255",
    b"65536",
    b"4294967295",
    b"9223372036854775807",
    b"18446744073709551615",
    b"1e308",
    b"null",
    b"{}",
    b"[]",
    b"\"\"",
    b"\"",
    b",",
    b"\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\\ud800",
];

/// Returns a damaged copy of one of these inputs. Returns an empty input if there is none.
#[must_use]
pub fn mutated(inputs: &[Vec<u8>], random: &mut Rng) -> Vec<u8> {
    let mut bytes = random.choice(inputs).cloned().unwrap_or_default();
    for _ in 0..1 << random.u32(0..4) {
        change(&mut bytes, inputs, random);
    }
    bytes.truncate(LARGEST);
    bytes
}

fn change(bytes: &mut Vec<u8>, inputs: &[Vec<u8>], random: &mut Rng) {
    let piece = piece(bytes.len(), random);
    match random.u32(0..8) {
        0 => {
            if let Some(byte) = bytes.get_mut(piece.start) {
                *byte ^= 1 << random.u32(0..8);
            }
        }
        1 => {
            if let Some(byte) = bytes.get_mut(piece.start) {
                *byte = random.u8(..);
            }
        }
        2 => drop(bytes.drain(piece)),
        3 => {
            let copy = bytes[piece.clone()].to_vec();
            insert(bytes, piece.start, &copy.repeat(random.usize(1..8)));
        }
        4 => bytes.truncate(piece.start),
        5 => {
            let word = random.choice(WORDS).unwrap_or_default();
            insert(bytes, piece.start, word);
        }
        6 => {
            // A number at or after the place.
            let digits = number_from(bytes, piece.start);
            let word = random.choice(WORDS).unwrap_or_default();
            bytes.splice(digits, word.iter().copied());
        }
        _ => {
            if let Some(other) = random.choice(inputs) {
                let from = self::piece(other.len(), random);
                insert(bytes, piece.start, &other[from]);
            }
        }
    }
}

/// Returns a range of at most 64 bytes.
fn piece(length: usize, random: &mut Rng) -> Range<usize> {
    let start = random.usize(..=length);
    start..(start + random.usize(..64)).min(length)
}

fn insert(bytes: &mut Vec<u8>, place: usize, piece: &[u8]) {
    bytes.splice(place..place, piece.iter().copied());
}

/// Returns the range of the next digits from a place on.
fn number_from(bytes: &[u8], place: usize) -> Range<usize> {
    let start = bytes[place..].iter().position(u8::is_ascii_digit);
    let start = start.map_or(bytes.len(), |offset| place + offset);
    let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    start..start + length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_inputs_and_others_differ() {
        let inputs = [b"{\"amount\": 1234}".to_vec()];
        let many = |seed| {
            let mut random = Rng::with_seed(seed);
            (0..100).map(|_| mutated(&inputs, &mut random)).collect::<Vec<_>>()
        };
        assert_eq!(many(1), many(1));
        assert_ne!(many(1), many(2));
        assert!(many(1).iter().any(|bytes| *bytes != inputs[0]));
        assert_eq!(number_from(b"a 12b", 0), 2..4);
        assert_eq!(number_from(b"ab", 1), 2..2);
    }
}
