//! The unwind rules that were found up once: by code address, from any thread, without a lock.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::rule::{PackedRule, PlainRule};
use crate::mem::lazy_slice::LazySlice;

/// RuleCache by code address. Each is one word, which says of itself whose it is: threads may overwrite each other's, and whoever
/// reads one has a true one or none.
///
/// A word is the rest of the address that its place does not say (34 bits), whether its module may go (1), and the rule (29).
pub(crate) struct RuleCache {
    words: LazySlice<AtomicU64>,
    /// Of rules whose module may go: what the module found like, in the same place as the rule. See [`RuleCache::insert_unloadable`].
    checksums: LazySlice<AtomicU64>,
}

/// How many rules there is room for. A row, a line of the processor's cache, is searched as a whole.
const ENTRIES: usize = 1 << 16;
const ROW: usize = 8;

/// Code lies below this.
const ADDRESS_BITS: u32 = 47;

const UNLOADABLE: u64 = 1 << PackedRule::BITS;

/// A rule that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CachedRule {
    /// Of code that stays as long as the process.
    Permanent(PackedRule),
    /// Of code that may be unloaded: to be held against its module's fingerprint.
    Unloadable(PackedRule),
}

impl RuleCache {
    pub(crate) const fn new() -> Self {
        RuleCache { words: LazySlice::new(), checksums: LazySlice::new() }
    }

    /// The rule of the code at this address.
    pub(crate) fn get(&self, code: usize) -> Option<CachedRule> {
        let row = row_of(self.words.get(ENTRIES)?, code)?;
        for step in 0..ROW {
            // Each word is true on its own: no order is needed.
            let word = row.get((home_slot(code) + step) % ROW)?.load(Relaxed);
            if is_of(word, code) {
                return decode(word);
            }
        }
        None
    }

    /// The rule of the code at this address, if it is plain and stays.
    #[inline(always)]
    pub(crate) fn plain(&self, code: usize) -> Option<PlainRule> {
        // Nearly always it is in the first place.
        let word = self.words.get(ENTRIES)?.get(home_slot(code))?.load(Relaxed);
        if PackedRule::are_plain(word ^ tag(code)) {
            Some(rule(word).plain())
        } else {
            self.plain_in_row(code)
        }
    }

    #[inline(never)]
    fn plain_in_row(&self, code: usize) -> Option<PlainRule> {
        match self.get(code)? {
            CachedRule::Permanent(rule) if PackedRule::are_plain(rule.bits().into()) => {
                Some(rule.plain())
            }
            _ => None,
        }
    }

    /// Remembers a rule. Where its row is full, another one is forgotten.
    pub(crate) fn insert(&self, code: usize, rule: PackedRule) {
        if let Some((place, _)) = self.slot_for(code) {
            place.store(word(code, rule), Relaxed);
        }
    }

    /// Remembers a rule of code that may be unloaded, with a fingerprint that is different for any other module in its place.
    pub(crate) fn insert_unloadable(&self, code: usize, rule: PackedRule, fingerprint: u64) {
        let Some((place, index)) = self.slot_for(code) else { return };
        let checksums =
            self.checksums.get_or_alloc(ENTRIES).and_then(|checksums| checksums.get(index));
        if let Some(checksum_slot) = checksums {
            let word = word(code, rule) | UNLOADABLE;
            // The two are not written as one. Whoever reads the rule of one module and the fingerprint of another finds out, since
            // the fingerprint covers the rule.
            checksum_slot.store(checksum(word, fingerprint), Relaxed);
            place.store(word, Relaxed);
        }
    }

    /// Whether a rule of code that may be unloaded is of the module that has this fingerprint.
    pub(crate) fn matches_module(&self, code: usize, rule: PackedRule, fingerprint: u64) -> bool {
        let word = word(code, rule) | UNLOADABLE;
        let (Some(words), Some(checksums)) = (self.words.get(ENTRIES), self.checksums.get(ENTRIES))
        else {
            return false;
        };
        let row = row_start(code);
        (row..row + ROW).any(|index| {
            words.get(index).is_some_and(|place| place.load(Relaxed) == word)
                && checksums
                    .get(index)
                    .is_some_and(|place| place.load(Relaxed) == checksum(word, fingerprint))
        })
    }

    /// Where the code's rule is or may be put.
    fn slot_for(&self, code: usize) -> Option<(&'static AtomicU64, usize)> {
        if code >> ADDRESS_BITS != 0 {
            return None;
        }
        let row = row_of(self.words.get_or_alloc(ENTRIES)?, code)?;
        let own = |step: usize| (home_slot(code) + step) % ROW;
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

/// The place where a rule is found for first; the others are those of the row that it is in.
///
/// Neighbours in the code are neighbours here, so that few lines of the processor's cache are touched: a row is for 64 bytes of
/// code, which hardly ever hold more calls than it has saved_at.
#[inline(always)]
fn home_slot(code: usize) -> usize {
    (code >> 3 ^ code >> 34 << 3) % ENTRIES
}

fn row_start(code: usize) -> usize {
    home_slot(code) / ROW * ROW
}

/// What the row does not say of the address, at the top of a word: its lowest 34 bits. The row gives the others back.
#[inline(always)]
fn tag(code: usize) -> u64 {
    (code as u64) << (PackedRule::BITS + 1)
}

fn is_of(word: u64, code: usize) -> bool {
    (word ^ tag(code)) >> (PackedRule::BITS + 1) == 0
}

fn word(code: usize, rule: PackedRule) -> u64 {
    tag(code) | u64::from(rule.bits())
}

#[inline(always)]
fn rule(word: u64) -> PackedRule {
    PackedRule::from_bits((word & (UNLOADABLE - 1)) as u32)
}

fn decode(word: u64) -> Option<CachedRule> {
    let rule = rule(word);
    match (rule.bits(), word & UNLOADABLE) {
        (0, _) => None,
        (_, 0) => Some(CachedRule::Permanent(rule)),
        _ => Some(CachedRule::Unloadable(rule)),
    }
}

fn checksum(word: u64, fingerprint: u64) -> u64 {
    (word ^ fingerprint.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ fingerprint
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::walk::rule::{Base, Rule};

    fn rule(number: usize) -> PackedRule {
        let cfa = 8 * (number % 1000 + 1);
        PackedRule::new(Rule::Plain(PlainRule { base: Base::StackPointer, cfa, saved: 0 }))
    }

    #[test]
    fn a_rule_is_that_of_its_own_address_or_none() {
        let rules = RuleCache::new();
        assert_eq!(rules.get(0x5555_0000_1234), None);
        let mut kept = 0;
        let code = |number: usize| 0x7f12_0000_0000 + number * 7919;
        for number in 0..100_000 {
            rules.insert(code(number), rule(number));
        }
        for number in 0..100_000 {
            if let Some(decode) = rules.get(code(number)) {
                assert_eq!(decode, CachedRule::Permanent(rule(number)));
                kept += 1;
            }
            assert_eq!(rules.get(code(number) + 1), None);
        }
        assert!(kept > ENTRIES / 2, "{kept}");
    }

    #[test]
    fn addresses_that_share_a_row_are_told_apart() {
        let rules = RuleCache::new();
        let code = |high: usize| high << 34 | high << 6 | 0x28;
        for high in 1..=ROW {
            rules.insert(code(high), rule(high));
        }
        for high in 1..=ROW {
            assert_eq!(rules.get(code(high)), Some(CachedRule::Permanent(rule(high))));
            assert_eq!(rules.plain(code(high)), Some(rule(high).plain()));
            assert_eq!(rules.plain(code(high) + 1), None);
        }
        // The row is full now: another one has to go.
        rules.insert(code(99), rule(99));
        assert_eq!(rules.get(code(99)), Some(CachedRule::Permanent(rule(99))));
        let kept = (1..=ROW).filter(|&high| rules.get(code(high)).is_some()).count();
        assert_eq!(kept, ROW - 1);
    }

    #[test]
    fn code_that_may_be_unloaded_is_held_against_its_seal() {
        let rules = RuleCache::new();
        rules.insert_unloadable(0x4000, rule(1), 77);
        assert_eq!(rules.get(0x4000), Some(CachedRule::Unloadable(rule(1))));
        assert!(rules.matches_module(0x4000, rule(1), 77));
        assert!(!rules.matches_module(0x4000, rule(1), 78));
        assert!(!rules.matches_module(0x4000, rule(2), 77));
        rules.insert_unloadable(0x4000, rule(2), 78);
        assert!(!rules.matches_module(0x4000, rule(1), 77));
        assert!(rules.matches_module(0x4000, rule(2), 78));
    }

    #[test]
    fn threads_read_true_rules_while_others_write() {
        let rules = RuleCache::new();
        let run = |salt: usize| {
            for number in 0..200_000_usize {
                let number = (number * 31 + salt) % 5000;
                let code = 0x10_0000 + number * 4096;
                rules.insert(code, rule(number));
                if let Some(decode) = rules.get(code) {
                    assert_eq!(decode, CachedRule::Permanent(rule(number)));
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
