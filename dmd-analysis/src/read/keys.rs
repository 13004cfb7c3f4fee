//! Numbers the keys of stacks and frames in the order of their first mention.

use rustc_hash::FxHashMap;

/// A table of numbered keys.
///
/// DMD's own keys are numbers in base 32, so that a table indexed by them is small; any other key
/// is hashed.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// By the value of a key: its number plus 1, or 0 for none.
    by_value: Vec<u32>,
    others: FxHashMap<Box<[u8]>, u32>,
    names: Vec<Box<str>>,
}

impl Keys {
    /// Returns the number of `key`, from 0.
    pub(crate) fn number(&mut self, key: &[u8]) -> u32 {
        // A dump has fewer than 2^32 keys, because each takes more than one byte of a text of
        // limited length.
        let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let known = match value(key) {
            Some(value) => {
                if self.by_value.len() <= value {
                    self.by_value.resize(value + 1, 0);
                }
                let entry = &mut self.by_value[value];
                if *entry == 0 {
                    *entry = next.saturating_add(1);
                }
                *entry - 1
            }
            None => match self.others.get(key) {
                Some(&number) => number,
                None => *self.others.entry(key.into()).or_insert(next),
            },
        };
        if known == next {
            self.names.push(String::from_utf8_lossy(key).into());
        }
        known
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn into_names(self) -> Vec<Box<str>> {
        self.names
    }
}

/// Returns the value of a key of up to four digits (`A` to `Z`, then `a` to `f`), which is
/// different for every key.
fn value(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() || digits.len() > 4 {
        return None;
    }
    digits.iter().try_fold(0, |value: usize, &digit| {
        let digit = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'f' => digit - b'a' + 26,
            _ => return None,
        };
        // Digits count from 1, so that `A` and `AA` differ.
        Some(value * 32 + usize::from(digit) + 1)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{Keys, value};

    #[test]
    fn keys_are_numbered_by_first_mention() {
        let mut keys = Keys::default();
        let table = [
            ("A", 0),
            ("AA", 1),
            ("A", 0),
            ("f", 2),
            ("ffff", 3),
            ("ABCDE", 4),
            ("t 1", 5),
            ("ABCDE", 4),
            ("", 6),
        ];
        for (key, expected) in table {
            assert_eq!(keys.number(key.as_bytes()), expected, "{key}");
        }
        let names: Vec<String> = keys.into_names().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["A", "AA", "f", "ffff", "ABCDE", "t 1", ""]);
    }

    #[test]
    fn no_two_keys_have_one_value() {
        let digits = ["", "A", "B", "Z", "a", "f"];
        let pairs = digits
            .iter()
            .flat_map(|first| digits.iter().map(move |second| format!("{first}{second}")));
        let keys: HashSet<String> = pairs.collect();
        let values: HashSet<Option<usize>> = keys.iter().map(|key| value(key.as_bytes())).collect();
        assert_eq!(values.len(), keys.len());
    }

    #[test]
    fn keys_of_other_lengths_have_no_value() {
        assert_eq!([value(b"A"), value(b"AA")], [Some(1), Some(33)]);
        assert!(value(b"ffff").is_some());
        assert_eq!([value(b""), value(b"AAAAA")], [None, None]);
    }
}
