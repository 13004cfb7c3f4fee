//! An unwind rule in a word: where the caller's registers are, seen from those of a frame.

use std::fmt;

/// What leads from a frame to its caller. The canonical frame address (CFA) is the caller's stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The CFA lies above a register, and the return address just below it.
    Plain(Plain),
    /// The CFA is in memory, that far from a register: signal frames, and functions that align their stack.
    Indirect { base: Base, cfa: isize, places: Places, is_signal: bool },
    /// This is the outermost frame.
    Outermost,
    /// Anything else: for the reference unwinder.
    Other,
}

/// The register that distances are measured from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    StackPointer,
    FramePointer,
}

/// The rule of nearly all code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    pub(crate) base: Base,
    /// How far above its base the CFA is.
    pub(crate) cfa: usize,
    /// How far below the CFA the frame pointer was saved; 0 if it is in its register still.
    pub(crate) saved: usize,
}

/// Where an indirect rule finds the caller's registers, in bytes from its base; `None` is the return address just below the
/// CFA, and the frame pointer in its register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) return_address: Option<isize>,
    pub(crate) frame_pointer: Option<isize>,
}

/// The bytes of a word of the stack.
pub(crate) const WORD: usize = size_of::<usize>();

/// A rule in 29 bits; never 0. What does not fit is [`Rule::Other`].
///
/// From the highest bit: the kind (2); then of a plain rule the base (1), and where the frame pointer is (8) and the CFA (18),
/// both in words; of an indirect one the base (1), whether it is a signal frame's (1), and the CFA, the return address and the
/// frame pointer (8 each), in words with a sign.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packed(u32);

/// 0, so that the kind of the common rule is compared together with what stands before it.
const PLAIN: u32 = 0;
const INDIRECT: u32 = 1;
const OUTERMOST: u32 = 2;
const OTHER: u32 = 3;

/// Where the fields begin.
const KIND: u32 = 27;
const BASE: u32 = 26;
const SAVED: u32 = 18;
const IS_SIGNAL: u32 = 25;
const RETURN_ADDRESS: u32 = 8;
const FRAME_POINTER: u32 = 16;

/// Stands for `None` in eight bits.
const NOWHERE: i8 = i8::MIN;

impl Packed {
    /// How many bits a rule has.
    pub(crate) const BITS: u32 = 29;

    pub(crate) fn new(rule: Rule) -> Self {
        Packed(pack(rule).unwrap_or(OTHER << KIND))
    }

    /// From what [`bits`](Self::bits) gave.
    #[inline]
    pub(crate) fn from_bits(bits: u32) -> Self {
        Packed(bits)
    }

    #[inline]
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    /// The plain rule; nonsense of another kind.
    #[inline(always)]
    pub(crate) fn plain(self) -> Plain {
        Plain {
            base: self.base(),
            cfa: (self.0 & 0x3_ffff) as usize * WORD,
            saved: (self.0 >> SAVED & 0xff) as usize * WORD,
        }
    }

    pub(crate) fn rule(self) -> Rule {
        match self.0 >> KIND {
            PLAIN => Rule::Plain(self.plain()),
            INDIRECT => self.indirect(),
            OUTERMOST => Rule::Outermost,
            _ => Rule::Other,
        }
    }

    /// Whether bits are those of a plain rule with nothing before it.
    #[inline(always)]
    pub(crate) fn are_plain(bits: u64) -> bool {
        bits >> KIND == 0
    }

    #[inline(always)]
    fn base(self) -> Base {
        if self.0 >> BASE & 1 == 0 { Base::StackPointer } else { Base::FramePointer }
    }

    fn indirect(self) -> Rule {
        let words = |shift: u32| {
            let words = (self.0 >> shift & 0xff).to_le_bytes()[0].cast_signed();
            (words != NOWHERE).then_some(isize::from(words) * WORD.cast_signed())
        };
        let places =
            Places { return_address: words(RETURN_ADDRESS), frame_pointer: words(FRAME_POINTER) };
        Rule::Indirect {
            base: self.base(),
            cfa: words(0).unwrap_or(0),
            places,
            is_signal: self.0 >> IS_SIGNAL & 1 == 1,
        }
    }
}

/// `None` if it does not fit.
fn pack(rule: Rule) -> Option<u32> {
    let base = |base: Base| u32::from(base == Base::FramePointer) << BASE;
    match rule {
        Rule::Plain(plain) => {
            let cfa = words(plain.cfa, 18).filter(|&cfa| cfa > 0)?;
            Some(PLAIN << KIND | base(plain.base) | words(plain.saved, 8)? << SAVED | cfa)
        }
        Rule::Indirect { base: from, cfa, places, is_signal } => {
            let place = |place: Option<isize>| place.map_or(Some(NOWHERE), signed_words);
            let byte = |words: i8| u32::from(words.cast_unsigned());
            let signal = u32::from(is_signal) << IS_SIGNAL;
            let cfa = byte(signed_words(cfa)?);
            let return_address = byte(place(places.return_address)?) << RETURN_ADDRESS;
            let frame_pointer = byte(place(places.frame_pointer)?) << FRAME_POINTER;
            Some(INDIRECT << KIND | base(from) | signal | cfa | return_address | frame_pointer)
        }
        Rule::Outermost => Some(OUTERMOST << KIND),
        Rule::Other => Some(OTHER << KIND),
    }
}

/// Whole words, if they fit these bits.
fn words(bytes: usize, bits: u32) -> Option<u32> {
    let words = u32::try_from(bytes / WORD).ok()?;
    (bytes.is_multiple_of(WORD) && words < 1 << bits).then_some(words)
}

fn signed_words(bytes: isize) -> Option<i8> {
    let word = WORD.cast_signed();
    let words = i8::try_from(bytes / word).ok()?;
    (bytes % word == 0 && words != NOWHERE).then_some(words)
}

impl fmt::Debug for Packed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rule().fmt(out)
    }
}

/// An address in code whose unwind rule is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodeAddress {
    /// An address inside the instruction that has not returned yet, or of the next instruction.
    pub(crate) code: usize,
    /// True if the instruction pointer stands there: in the innermost frame, and in one that a signal
    /// interrupted. In all others it stands one past the call.
    pub(crate) is_exact: bool,
}

/// A rule that was looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoundRule {
    pub(crate) rule: Packed,
    /// True if it holds for the rest of the process.
    pub(crate) is_fixed: bool,
}

#[cfg(test)]
mod tests {
    use super::Base::{FramePointer, StackPointer};
    use super::*;

    fn plain(cfa: usize, saved: usize) -> Rule {
        Rule::Plain(Plain { base: StackPointer, cfa, saved })
    }

    fn indirect(cfa: isize, return_address: Option<isize>) -> Rule {
        let places = Places { return_address, frame_pointer: Some(120) };
        Rule::Indirect { base: FramePointer, cfa, places, is_signal: true }
    }

    #[test]
    fn what_fits_comes_back_and_what_does_not_is_left_to_others() {
        let fits = [
            Rule::Plain(Plain { base: FramePointer, cfa: 16, saved: 16 }),
            Rule::Outermost,
            Rule::Other,
            plain(8, 0),
            plain(8 * ((1 << 18) - 1), 8 * 255),
            indirect(160, Some(168)),
            indirect(-8, None),
        ];
        for rule in fits {
            let packed = Packed::new(rule);
            assert_eq!(packed.rule(), rule);
            assert!(packed.bits() != 0 && packed.bits() < 1 << Packed::BITS, "{packed:?}");
        }
        let too_big = [
            plain(0, 0),
            plain(12, 0),
            plain(8 << 18, 0),
            plain(16, 8 * 256),
            indirect(8 * 128, None),
            indirect(16, Some(-8 * 128)),
        ];
        for rule in too_big {
            assert_eq!(Packed::new(rule).rule(), Rule::Other, "{rule:?}");
        }
    }
}
