//! The unwind rules that were looked up once: by code address, from any thread, without a lock.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::rule::{Packed, Plain};
use crate::mem::pages::Lazy;

/// Rules by code address. Each is one word, which says of itself whose it is: threads may overwrite each other's, and whoever
/// reads one has a true one or none.
///
/// A word is the rest of the address that its place does not say (34 bits), whether its module may go (1), and the rule (29).
pub(crate) struct Rules {
    words: Lazy<AtomicU64>,
    /// Of rules whose module may go: what the module looked like, in the same place as the rule. See [`Rules::put_loose`].
    seals: Lazy<AtomicU64>,
}

/// How many rules there is room for. A row, a line of the processor's cache, is searched as a whole.
const PLACES: usize = 1 << 16;
const ROW: usize = 8;

/// Code lies below this.
const ADDRESS_BITS: u32 = 47;

const LOOSE: u64 = 1 << Packed::BITS;

/// A rule that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Of code that stays as long as the process.
    Fixed(Packed),
    /// Of code that may be unloaded: to be held against its module's seal.
    Loose(Packed),
}

impl Rules {
    pub(crate) const fn new() -> Self {
        Rules { words: Lazy::new(), seals: Lazy::new() }
    }

    /// The rule of the code at this address.
    pub(crate) fn get(&self, code: usize) -> Option<Known> {
        let row = row_of(self.words.get(PLACES)?, code)?;
        for step in 0..ROW {
            // Each word is true on its own: no order is needed.
            let word = row.get((first(code) + step) % ROW)?.load(Relaxed);
            if is_of(word, code) {
                return known(word);
            }
        }
        None
    }

    /// The rule of the code at this address, if it is plain and stays.
    #[inline(always)]
    pub(crate) fn plain(&self, code: usize) -> Option<Plain> {
        // Nearly always it is in the first place.
        let word = self.words.get(PLACES)?.get(first(code))?.load(Relaxed);
        if Packed::are_plain(word ^ tag(code)) {
            Some(rule(word).plain())
        } else {
            self.plain_elsewhere(code)
        }
    }

    #[inline(never)]
    fn plain_elsewhere(&self, code: usize) -> Option<Plain> {
        match self.get(code)? {
            Known::Fixed(rule) if Packed::are_plain(rule.bits().into()) => Some(rule.plain()),
            _ => None,
        }
    }

    /// Remembers a rule. Where its row is full, another one is forgotten.
    pub(crate) fn put(&self, code: usize, rule: Packed) {
        if let Some((place, _)) = self.place_for(code) {
            place.store(word(code, rule), Relaxed);
        }
    }

    /// Remembers a rule of code that may be unloaded, with a seal that is different for any other module in its place.
    pub(crate) fn put_loose(&self, code: usize, rule: Packed, seal: u64) {
        let Some((place, index)) = self.place_for(code) else { return };
        let seals = self.seals.get_or_make(PLACES).and_then(|seals| seals.get(index));
        if let Some(place_of_seal) = seals {
            let word = word(code, rule) | LOOSE;
            // The two are not written as one. Whoever reads the rule of one module and the seal of another finds out, since
            // the seal covers the rule.
            place_of_seal.store(sealed(word, seal), Relaxed);
            place.store(word, Relaxed);
        }
    }

    /// Whether a rule of code that may be unloaded is of the module that has this seal.
    pub(crate) fn is_sealed(&self, code: usize, rule: Packed, seal: u64) -> bool {
        let word = word(code, rule) | LOOSE;
        let (Some(words), Some(seals)) = (self.words.get(PLACES), self.seals.get(PLACES)) else {
            return false;
        };
        let row = row_start(code);
        (row..row + ROW).any(|index| {
            words.get(index).is_some_and(|place| place.load(Relaxed) == word)
                && seals.get(index).is_some_and(|place| place.load(Relaxed) == sealed(word, seal))
        })
    }

    /// Where the code's rule is or may be put.
    fn place_for(&self, code: usize) -> Option<(&'static AtomicU64, usize)> {
        if code >> ADDRESS_BITS != 0 {
            return None;
        }
        let row = row_of(self.words.get_or_make(PLACES)?, code)?;
        let own = |step: usize| (first(code) + step) % ROW;
        let is_free = |at: &usize| {
            let word = row.get(*at).map_or(0, |place| place.load(Relaxed));
            word == 0 || is_of(word, code)
        };
        let free = (0..ROW).map(own).find(is_free);
        let at = free.unwrap_or(own(0));
        Some((row.get(at)?, row_start(code) + at))
    }
}

#[inline(always)]
fn row_of(words: &'static [AtomicU64], code: usize) -> Option<&'static [AtomicU64; ROW]> {
    words.as_chunks::<ROW>().0.get(row_start(code) / ROW)
}

/// The place where a rule is looked for first; the others are those of the row that it is in.
///
/// Neighbours in the code are neighbours here, so that few lines of the processor's cache are touched: a row is for 64 bytes of
/// code, which hardly ever hold more calls than it has places.
#[inline(always)]
fn first(code: usize) -> usize {
    (code >> 3 ^ code >> 34 << 3) % PLACES
}

fn row_start(code: usize) -> usize {
    first(code) / ROW * ROW
}

/// What the row does not say of the address, at the top of a word: its lowest 34 bits. The row gives the others back.
#[inline(always)]
fn tag(code: usize) -> u64 {
    (code as u64) << (Packed::BITS + 1)
}

fn is_of(word: u64, code: usize) -> bool {
    (word ^ tag(code)) >> (Packed::BITS + 1) == 0
}

fn word(code: usize, rule: Packed) -> u64 {
    tag(code) | u64::from(rule.bits())
}

#[inline(always)]
fn rule(word: u64) -> Packed {
    Packed::from_bits((word & (LOOSE - 1)) as u32)
}

fn known(word: u64) -> Option<Known> {
    let rule = rule(word);
    match (rule.bits(), word & LOOSE) {
        (0, _) => None,
        (_, 0) => Some(Known::Fixed(rule)),
        _ => Some(Known::Loose(rule)),
    }
}

fn sealed(word: u64, seal: u64) -> u64 {
    (word ^ seal.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seal
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::walk::rule::{Base, Rule};

    fn rule(number: usize) -> Packed {
        let cfa = 8 * (number % 1000 + 1);
        Packed::new(Rule::Plain(Plain { base: Base::StackPointer, cfa, saved: 0 }))
    }

    #[test]
    fn a_rule_is_that_of_its_own_address_or_none() {
        let rules = Rules::new();
        assert_eq!(rules.get(0x5555_0000_1234), None);
        let mut kept = 0;
        let code = |number: usize| 0x7f12_0000_0000 + number * 7919;
        for number in 0..100_000 {
            rules.put(code(number), rule(number));
        }
        for number in 0..100_000 {
            if let Some(known) = rules.get(code(number)) {
                assert_eq!(known, Known::Fixed(rule(number)));
                kept += 1;
            }
            assert_eq!(rules.get(code(number) + 1), None);
        }
        assert!(kept > PLACES / 2, "{kept}");
    }

    #[test]
    fn addresses_that_share_a_row_are_told_apart() {
        let rules = Rules::new();
        let code = |high: usize| high << 34 | high << 6 | 0x28;
        for high in 1..=ROW {
            rules.put(code(high), rule(high));
        }
        for high in 1..=ROW {
            assert_eq!(rules.get(code(high)), Some(Known::Fixed(rule(high))));
            assert_eq!(rules.plain(code(high)), Some(rule(high).plain()));
            assert_eq!(rules.plain(code(high) + 1), None);
        }
        // The row is full now: another one has to go.
        rules.put(code(99), rule(99));
        assert_eq!(rules.get(code(99)), Some(Known::Fixed(rule(99))));
        let kept = (1..=ROW).filter(|&high| rules.get(code(high)).is_some()).count();
        assert_eq!(kept, ROW - 1);
    }

    #[test]
    fn code_that_may_be_unloaded_is_held_against_its_seal() {
        let rules = Rules::new();
        rules.put_loose(0x4000, rule(1), 77);
        assert_eq!(rules.get(0x4000), Some(Known::Loose(rule(1))));
        assert!(rules.is_sealed(0x4000, rule(1), 77));
        assert!(!rules.is_sealed(0x4000, rule(1), 78));
        assert!(!rules.is_sealed(0x4000, rule(2), 77));
        rules.put_loose(0x4000, rule(2), 78);
        assert!(!rules.is_sealed(0x4000, rule(1), 77));
        assert!(rules.is_sealed(0x4000, rule(2), 78));
    }

    #[test]
    fn threads_read_true_rules_while_others_write() {
        let rules = Rules::new();
        let run = |salt: usize| {
            for number in 0..200_000_usize {
                let number = (number * 31 + salt) % 5000;
                let code = 0x10_0000 + number * 4096;
                rules.put(code, rule(number));
                if let Some(known) = rules.get(code) {
                    assert_eq!(known, Known::Fixed(rule(number)));
                }
            }
        };
        std::thread::scope(|scope| {
            for salt in 0..3 {
                scope.spawn(move || run(salt));
            }
        });
    }
}
