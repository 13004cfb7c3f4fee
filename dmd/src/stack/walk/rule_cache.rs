//! The cache of unwind rules by code address, for all threads, without a lock.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::rule::{PackedRule, PlainRule};
use crate::mem::lazy_slice::LazySlice;

/// A lock-free cache of unwind rules by code address. An entry is one word that contains its own
/// tag: threads overwrite entries, and a reader finds the rule of its address or none.
///
/// An entry has the low bits of the address (34), a flag for code that may be unloaded (1), and the
/// rule (29).
pub(crate) struct RuleCache {
    words: LazySlice<AtomicU64>,
    /// Checksums of rules whose module may be unloaded, at the index of the rule. See
    /// [`RuleCache::insert_unloadable`].
    checksums: LazySlice<AtomicU64>,
}

/// The number of entries. A look-up searches a row, which is one cache line.
const ENTRIES: usize = 1 << 16;
const ROW: usize = 8;

/// The number of bits of a code address.
const ADDRESS_BITS: u32 = 47;

const UNLOADABLE: u64 = 1 << PackedRule::BITS;

/// A rule in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CachedRule {
    /// The code stays loaded until the process ends.
    Permanent(PackedRule),
    /// The code may be unloaded: check the rule with [`RuleCache::matches_module`].
    Unloadable(PackedRule),
}

impl RuleCache {
    pub(crate) const fn new() -> Self {
        RuleCache { words: LazySlice::new(), checksums: LazySlice::new() }
    }

    /// Returns the rule of the code at this address.
    pub(crate) fn get(&self, code: usize) -> Option<CachedRule> {
        let row = row_of(self.words.get(ENTRIES)?, code)?;
        for step in 0..ROW {
            // Relaxed: each word contains its own tag.
            let word = row.get((home_slot(code) + step) % ROW)?.load(Relaxed);
            if is_of(word, code) {
                return decode(word);
            }
        }
        None
    }

    /// Returns the rule of the code at this address, if it is plain and permanent.
    #[inline(always)]
    pub(crate) fn plain(&self, code: usize) -> Option<PlainRule> {
        // Nearly always the rule is in its home slot. Relaxed: the word contains its own tag.
        let word = self.words.get(ENTRIES)?.get(home_slot(code))?.load(Relaxed);
        if PackedRule::are_plain(word ^ tag(code)) {
            Some(rule(word).plain())
        } else {
            self.plain_in_row(code)
        }
    }

    #[inline(never)]
    fn plain_in_row(&self, code: usize) -> Option<PlainRule> {
        let row = row_of(self.words.get(ENTRIES)?, code)?;
        let tag = tag(code);
        (1..ROW).find_map(|step| {
            let word = row.get((home_slot(code) + step) % ROW)?.load(Relaxed);
            PackedRule::are_plain(word ^ tag).then(|| rule(word).plain())
        })
    }

    /// Inserts a rule of permanent code. In a full row it replaces an entry.
    pub(crate) fn insert(&self, code: usize, rule: PackedRule) {
        if let Some((place, _)) = self.slot_for(code) {
            place.store(word(code, rule), Relaxed);
        }
    }

    /// Inserts a rule of code that may be unloaded, with the fingerprint of its module.
    pub(crate) fn insert_unloadable(&self, code: usize, rule: PackedRule, fingerprint: u64) {
        let Some((place, index)) = self.slot_for(code) else { return };
        let checksums =
            self.checksums.get_or_alloc(ENTRIES).and_then(|checksums| checksums.get(index));
        if let Some(checksum_slot) = checksums {
            let word = word(code, rule) | UNLOADABLE;
            // The two stores are not atomic together. The checksum covers the rule and the
            // fingerprint, so a reader detects words of two modules. Relaxed, for that reason.
            checksum_slot.store(checksum(word, fingerprint), Relaxed);
            place.store(word, Relaxed);
        }
    }

    /// Returns whether a rule of code that may be unloaded belongs to the module with this
    /// fingerprint.
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

    /// Returns the slot for the code's rule, and its index.
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

/// Returns the index of the slot that is searched first; then follow the others of its row.
///
/// Neighbouring code has neighbouring slots, so that a walk touches few cache lines. A row covers
/// 64 bytes of code, which rarely contain more calls than it has slots.
#[inline(always)]
fn home_slot(code: usize) -> usize {
    (code >> 3 ^ code >> 34 << 3) % ENTRIES
}

fn row_start(code: usize) -> usize {
    home_slot(code) / ROW * ROW
}

/// Returns the tag of an address: its low 34 bits, at the top of a word. The row determines the
/// other bits.
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
    fn a_look_up_returns_the_rule_of_its_address_or_none() {
        let rules = RuleCache::new();
        assert_eq!(rules.get(0x5555_0000_1234), None);
        let mut kept = 0;
        let code = |number: usize| 0x7f12_0000_0000 + number * 7919;
        for number in 0..100_000 {
            rules.insert(code(number), rule(number));
        }
        for number in 0..100_000 {
            if let Some(cached) = rules.get(code(number)) {
                assert_eq!(cached, CachedRule::Permanent(rule(number)));
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
        // The row is full now, so an entry is replaced.
        rules.insert(code(99), rule(99));
        assert_eq!(rules.get(code(99)), Some(CachedRule::Permanent(rule(99))));
        let kept = (1..=ROW).filter(|&high| rules.get(code(high)).is_some()).count();
        assert_eq!(kept, ROW - 1);
    }

    #[test]
    fn rules_of_unloadable_code_are_checked_against_the_fingerprint() {
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
    fn threads_read_correct_rules_while_others_write() {
        let rules = RuleCache::new();
        let run = |salt: usize| {
            for number in 0..200_000_usize {
                let number = (number * 31 + salt) % 5000;
                let code = 0x10_0000 + number * 4096;
                rules.insert(code, rule(number));
                if let Some(cached) = rules.get(code) {
                    assert_eq!(cached, CachedRule::Permanent(rule(number)));
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
