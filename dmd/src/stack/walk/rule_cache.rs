//! The cache of unwind rules by code address, for all threads, without a lock.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::rule::{PackedRule, PlainRule};
use crate::mem::lazy_slice::LazySlice;

/// A lock-free cache of unwind rules by code address. An entry is one word that contains its own
/// tag: threads overwrite entries, and a reader finds the rule of its address or none.
///
/// A word is the spread address, which has zeros in its low 17 bits, exclusive-or the rule (29
/// bits) and a flag for code that may be unloaded (1), rotated into the place of these zeros and of
/// the bits that choose the row (13). The other 34 bits are the tag.
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
        let spread = spread_code(code);
        let row = row_of(self.words.get(ENTRIES)?, spread)?;
        (0..ROW).find_map(|step| {
            // Relaxed: each word contains its own tag.
            let word = row.get((home_slot(spread) + step) % ROW)?.load(Relaxed);
            if word == 0 { None } else { decode(unpack(word, spread)) }
        })
    }

    /// Returns the rules for quick look-ups, once there are any.
    #[inline(always)]
    pub(crate) fn plain_rules(&self) -> Option<PlainRules> {
        self.words.get(ENTRIES)?.try_into().ok().map(PlainRules)
    }

    /// Inserts a rule of permanent code. In a full row it replaces an entry.
    pub(crate) fn insert(&self, code: usize, rule: PackedRule) {
        if let Some((place, _)) = self.slot_for(code) {
            place.store(pack(rule.bits().into(), spread_code(code)), Relaxed);
        }
    }

    /// Inserts a rule of code that may be unloaded, with the fingerprint of its module.
    pub(crate) fn insert_unloadable(&self, code: usize, rule: PackedRule, fingerprint: u64) {
        let Some((place, index)) = self.slot_for(code) else { return };
        let checksums =
            self.checksums.get_or_alloc(ENTRIES).and_then(|checksums| checksums.get(index));
        if let Some(checksum_slot) = checksums {
            let word = pack(UNLOADABLE | u64::from(rule.bits()), spread_code(code));
            // The two stores are not atomic together. The checksum covers the rule and the
            // fingerprint, so a reader detects words of two modules. Relaxed, for that reason.
            checksum_slot.store(checksum(word, fingerprint), Relaxed);
            place.store(word, Relaxed);
        }
    }

    /// Returns whether a rule of code that may be unloaded belongs to the module with this
    /// fingerprint.
    pub(crate) fn matches_module(&self, code: usize, rule: PackedRule, fingerprint: u64) -> bool {
        let spread = spread_code(code);
        let word = pack(UNLOADABLE | u64::from(rule.bits()), spread);
        let (Some(words), Some(checksums)) = (self.words.get(ENTRIES), self.checksums.get(ENTRIES))
        else {
            return false;
        };
        let row = row_start(spread);
        (row..row + ROW).any(|index| {
            words.get(index).is_some_and(|place| place.load(Relaxed) == word)
                && checksums
                    .get(index)
                    .is_some_and(|place| place.load(Relaxed) == checksum(word, fingerprint))
        })
    }

    /// Returns the slot for the code's rule, and its index.
    fn slot_for(&self, code: usize) -> Option<(&'static AtomicU64, usize)> {
        if code.wrapping_add(1) >> ADDRESS_BITS != 0 {
            return None;
        }
        let spread = spread_code(code);
        let row = row_of(self.words.get_or_alloc(ENTRIES)?, spread)?;
        let own = |step: usize| (home_slot(spread) + step) % ROW;
        let is_free = |at: &usize| {
            let word = row.get(*at).map_or(0, |place| place.load(Relaxed));
            word == 0 || is_of(unpack(word, spread))
        };
        let free = (0..ROW).map(own).find(is_free);
        let at = free.unwrap_or(own(0));
        Some((row.get(at)?, row_start(spread) + at))
    }
}

/// The cached rules that are plain and permanent.
#[derive(Clone, Copy)]
pub(crate) struct PlainRules(&'static [AtomicU64; ENTRIES]);

impl PlainRules {
    /// Returns the rule of the call before this return address.
    #[inline(always)]
    pub(crate) fn before(self, return_address: usize) -> Option<PlainRule> {
        let spread = spread(return_address);
        // Nearly always the rule is in its home slot. Relaxed: the word contains its own tag.
        let bits = unpack(self.0[home_slot(spread)].load(Relaxed), spread);
        PlainRule::from_bits(bits).or_else(|| PlainRule::from_bits(self.in_row(spread)))
    }

    /// Returns the plain rule from another slot than the home slot; 0 if there is none.
    #[cold]
    #[inline(never)]
    fn in_row(self, spread: usize) -> u64 {
        let row = row_of(self.0, spread);
        let others = (1..ROW).map(|step| (home_slot(spread) + step) % ROW);
        let words = others.filter_map(|at| Some(row?.get(at)?.load(Relaxed)));
        words
            .map(|word| unpack(word, spread))
            .find(|bits| PlainRule::from_bits(*bits).is_some())
            .unwrap_or(0)
    }
}

#[inline(always)]
fn row_of(words: &'static [AtomicU64], spread: usize) -> Option<&'static [AtomicU64; ROW]> {
    words.as_chunks::<ROW>().0.get(row_start(spread) / ROW)
}

/// Spreads the address of code over the high bits of a word: a bijection of addresses. Calls whose
/// code is a power of two apart, as in big programs, do not come into one slot.
#[inline(always)]
fn spread_code(code: usize) -> usize {
    spread(code.wrapping_add(1))
}

/// Spreads the return address of a call, whose code is the byte before.
#[inline(always)]
fn spread(return_address: usize) -> usize {
    const ODD: usize = 0x9e37_79b9_7f4a_7c15;
    return_address.wrapping_mul(ODD << (usize::BITS - ADDRESS_BITS))
}

/// Returns the index of the slot that is searched first; then follow the others of its row.
#[inline(always)]
fn home_slot(spread: usize) -> usize {
    spread >> (usize::BITS - ENTRIES.ilog2())
}

fn row_start(spread: usize) -> usize {
    home_slot(spread) / ROW * ROW
}

/// The number of bits that choose a row.
const ROW_BITS: u32 = (ENTRIES / ROW).ilog2();

const _: () = assert!(ADDRESS_BITS - ROW_BITS + PackedRule::BITS + 1 == u64::BITS);

/// Returns the word of these bits, a rule below the flag, for code with this spread address.
fn pack(bits: u64, spread: usize) -> u64 {
    bits.rotate_right(ROW_BITS) ^ spread as u64
}

/// Returns the bits of a word; any of the upper ones are set if it is another address's.
#[inline(always)]
fn unpack(word: u64, spread: usize) -> u64 {
    (word ^ spread as u64).rotate_left(ROW_BITS)
}

/// Returns whether these bits are of the address that they were unpacked for.
fn is_of(bits: u64) -> bool {
    bits >> (PackedRule::BITS + 1) == 0
}

#[inline(always)]
fn rule(bits: u64) -> PackedRule {
    PackedRule::from_bits((bits & (UNLOADABLE - 1)) as u32)
}

fn decode(bits: u64) -> Option<CachedRule> {
    let rule = rule(bits);
    match bits & UNLOADABLE {
        _ if !is_of(bits) => None,
        0 => Some(CachedRule::Permanent(rule)),
        _ => Some(CachedRule::Unloadable(rule)),
    }
}

fn checksum(word: u64, fingerprint: u64) -> u64 {
    (word ^ fingerprint.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ fingerprint
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::walk::rule::{Base, PlainRule, Rule};

    fn rule(number: usize) -> PackedRule {
        let cfa = 8 * (number % 1000 + 1);
        PackedRule::new(Rule::Plain(PlainRule { base: Base::StackPointer, cfa, saved: 8 }))
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
        assert!(rules.plain_rules().is_none());
        let row = row_start(spread_code(0x5555_0000_0000));
        let in_row = |code: &usize| row_start(spread_code(*code)) == row;
        let codes: Vec<usize> = (0x5555_0000_0000..).filter(in_row).take(ROW + 1).collect();
        let (last, first) = codes.split_last().expect("there are some");
        for (number, code) in first.iter().enumerate() {
            rules.insert(*code, rule(number));
        }
        let before = |address| rules.plain_rules().expect("they are mapped").before(address);
        for (number, code) in first.iter().enumerate() {
            assert_eq!(rules.get(*code), Some(CachedRule::Permanent(rule(number))));
            assert_eq!(before(code + 1).map(Rule::Plain), Some(rule(number).rule()));
            assert_eq!(before(code + 2), None);
        }
        assert_eq!((rules.get(*last), before(last + 1)), (None, None));
        // The row is full now, so an entry is replaced.
        rules.insert(*last, rule(99));
        assert_eq!(rules.get(*last), Some(CachedRule::Permanent(rule(99))));
        let kept = first.iter().filter(|&&code| rules.get(code).is_some()).count();
        assert_eq!(kept, ROW - 1);
    }

    #[test]
    fn each_address_has_its_own_row_and_tag() {
        // The spread addresses determine the addresses, bit by bit.
        for bit in 0..ADDRESS_BITS {
            let other = 0x5555_1234_5678 ^ 1_usize << bit;
            let of = |code| (row_start(spread_code(code)), unpack(0, spread_code(code)) >> 30);
            assert_ne!(of(0x5555_1234_5678), of(other), "bit {bit}");
        }
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
