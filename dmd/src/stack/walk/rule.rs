//! Unwind rules, packed into a word: the caller's registers as seen from a frame.

use std::fmt;

/// An unwind rule: how to get from a frame to its caller. The canonical frame address (CFA) is the
/// caller's stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The CFA is a register plus an offset, and the return address is just below the CFA.
    Plain(PlainRule),
    /// The CFA is in memory, at an offset from a register: signal frames, and functions that
    /// realign their stack.
    Indirect { base: Base, cfa: isize, saved_at: SavedOffsets, is_signal: bool },
    /// The frame is the outermost one.
    Outermost,
    /// Any other rule, for the reference unwinder.
    Unsupported,
}

/// The register that offsets are relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    StackPointer,
    FramePointer,
}

/// The rule of nearly all code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlainRule {
    pub(crate) base: Base,
    /// The distance from the base up to the CFA.
    pub(crate) cfa: usize,
    /// The distance from the CFA down to the saved frame pointer. If that is still in its register,
    /// a word: the distance down to the return address.
    pub(crate) saved: usize,
}

/// The offsets of the saved registers from the base of an indirect rule. `None` means that the
/// return address is just below the CFA, or the frame pointer still in its register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SavedOffsets {
    pub(crate) return_address: Option<isize>,
    pub(crate) frame_pointer: Option<isize>,
}

/// The size of a word of the stack in bytes.
pub(crate) const WORD: usize = size_of::<usize>();

/// A rule in 29 bits, never 0. Rules that do not fit become [`Rule::Unsupported`].
///
/// From the highest bit, the kind (2). Then of a plain rule the base (1), the frame pointer's
/// offset (8) and the CFA's (18), in words. Of an indirect rule the base (1), the flag of a signal
/// frame (1), and the offsets of the frame pointer, the return address and the CFA (8 each), in
/// signed words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedRule(u32);

/// Not 0, so that an empty word is no plain rule.
const PLAIN: u32 = 1;
const INDIRECT: u32 = 2;
const OUTERMOST: u32 = 3;
/// With another bit set, since a rule is never 0.
const UNSUPPORTED: u32 = 0;

/// The shifts of the fields.
const KIND: u32 = 27;
const BASE: u32 = 26;
const SAVED: u32 = 18;
const IS_SIGNAL: u32 = 25;
const RETURN_ADDRESS: u32 = 8;
const FRAME_POINTER: u32 = 16;

/// Encodes `None` in eight bits.
const NOWHERE: i8 = i8::MIN;

impl PackedRule {
    /// The number of bits of a rule.
    pub(crate) const BITS: u32 = 29;

    pub(crate) fn new(rule: Rule) -> Self {
        PackedRule(pack(rule).unwrap_or(UNSUPPORTED << KIND | 1))
    }

    /// Makes a rule from its [`bits`](Self::bits).
    #[inline]
    pub(crate) fn from_bits(bits: u32) -> Self {
        PackedRule(bits)
    }

    #[inline]
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    pub(crate) fn rule(self) -> Rule {
        if let Some(plain) = PlainRule::from_bits(self.0.into()) {
            return Rule::Plain(plain);
        }
        match self.0 >> KIND {
            INDIRECT => self.indirect(),
            OUTERMOST => Rule::Outermost,
            _ => Rule::Unsupported,
        }
    }

    fn indirect(self) -> Rule {
        let words = |shift: u32| {
            let words = (self.0 >> shift & 0xff).to_le_bytes()[0].cast_signed();
            (words != NOWHERE).then_some(isize::from(words) * WORD.cast_signed())
        };
        let saved_at = SavedOffsets {
            return_address: words(RETURN_ADDRESS),
            frame_pointer: words(FRAME_POINTER),
        };
        Rule::Indirect {
            base: base(self.0 >> BASE),
            cfa: words(0).unwrap_or(0),
            saved_at,
            is_signal: self.0 >> IS_SIGNAL & 1 == 1,
        }
    }
}

impl PlainRule {
    /// Returns the plain rule of these bits, if they are one below a zero tag.
    #[inline(always)]
    pub(crate) fn from_bits(bits: u64) -> Option<Self> {
        if bits >> KIND != u64::from(PLAIN) {
            return None;
        }
        let bits = (bits & 0xffff_ffff) as u32;
        Some(PlainRule {
            base: base(bits >> BASE),
            cfa: (bits & 0x3_ffff) as usize * WORD,
            saved: (bits >> SAVED & 0xff) as usize * WORD,
        })
    }
}

/// Returns the base that the lowest bit states.
#[inline(always)]
fn base(bit: u32) -> Base {
    if bit & 1 == 0 { Base::StackPointer } else { Base::FramePointer }
}

/// Packs a rule. Returns `None` if it does not fit.
fn pack(rule: Rule) -> Option<u32> {
    let base = |base: Base| u32::from(base == Base::FramePointer);
    match rule {
        Rule::Plain(plain) => {
            let cfa = words(plain.cfa, 18).filter(|&cfa| cfa > 0)?;
            let base = base(plain.base) << BASE;
            let saved = words(plain.saved, 8).filter(|&saved| saved > 0)?;
            Some(PLAIN << KIND | base | saved << SAVED | cfa)
        }
        Rule::Indirect { base: from, cfa, saved_at, is_signal } => {
            let place = |place: Option<isize>| place.map_or(Some(NOWHERE), signed_words);
            let byte = |words: i8| u32::from(words.cast_unsigned());
            let signal = u32::from(is_signal) << IS_SIGNAL;
            let cfa = byte(signed_words(cfa)?);
            let return_address = byte(place(saved_at.return_address)?) << RETURN_ADDRESS;
            let frame_pointer = byte(place(saved_at.frame_pointer)?) << FRAME_POINTER;
            let base = base(from) << BASE;
            Some(INDIRECT << KIND | base | signal | cfa | return_address | frame_pointer)
        }
        Rule::Outermost => Some(OUTERMOST << KIND),
        Rule::Unsupported => Some(UNSUPPORTED << KIND | 1),
    }
}

/// Converts bytes to whole words, if they fit into this many bits.
fn words(bytes: usize, bits: u32) -> Option<u32> {
    let words = u32::try_from(bytes / WORD).ok()?;
    (bytes.is_multiple_of(WORD) && words < 1 << bits).then_some(words)
}

fn signed_words(bytes: isize) -> Option<i8> {
    let word = WORD.cast_signed();
    let words = i8::try_from(bytes / word).ok()?;
    (bytes % word == 0 && words != NOWHERE).then_some(words)
}

impl fmt::Debug for PackedRule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rule().fmt(out)
    }
}

/// A code address to look up the unwind rule of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodeAddress {
    /// An address inside the calling instruction, or of the next instruction to run.
    pub(crate) code: usize,
    /// True if the instruction pointer is exactly there: in the innermost frame, and in one that a
    /// signal interrupted. In other frames it is one past the call.
    pub(crate) is_exact: bool,
}

/// The result of a look-up of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoundRule {
    pub(crate) rule: PackedRule,
    /// True if the rule holds until the process ends.
    pub(crate) is_permanent: bool,
}

#[cfg(test)]
mod tests {
    use super::Base::{FramePointer, StackPointer};
    use super::*;

    fn plain(cfa: usize, saved: usize) -> Rule {
        Rule::Plain(PlainRule { base: StackPointer, cfa, saved })
    }

    fn indirect(cfa: isize, return_address: Option<isize>) -> Rule {
        let saved_at = SavedOffsets { return_address, frame_pointer: Some(120) };
        Rule::Indirect { base: FramePointer, cfa, saved_at, is_signal: true }
    }

    #[test]
    fn rules_that_fit_round_trip_and_others_are_unsupported() {
        let fits = [
            Rule::Plain(PlainRule { base: FramePointer, cfa: 16, saved: 16 }),
            Rule::Outermost,
            Rule::Unsupported,
            plain(8, 8),
            plain(8 * ((1 << 18) - 1), 8 * 255),
            indirect(160, Some(168)),
            indirect(-8, None),
        ];
        for rule in fits {
            let packed = PackedRule::new(rule);
            assert_eq!(packed.rule(), rule);
            assert!(packed.bits() != 0 && packed.bits() < 1 << PackedRule::BITS, "{packed:?}");
        }
        let too_big = [
            plain(0, 8),
            plain(8, 0),
            plain(12, 8),
            plain(8 << 18, 8),
            plain(16, 8 * 256),
            indirect(8 * 128, None),
            indirect(16, Some(-8 * 128)),
        ];
        for rule in too_big {
            assert_eq!(PackedRule::new(rule).rule(), Rule::Unsupported, "{rule:?}");
        }
    }
}
