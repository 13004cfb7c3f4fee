//! The machine words that a value consists of, to look for the blocks that it points to.
#![expect(
    unsafe_code,
    reason = "reads memory whose type is not known, by an instruction that the compiler does not see into"
)]

use core::marker::PhantomData;

/// The aligned words of a value, first to last. None where they cannot be read: under Miri, and on other processors.
///
/// They are for looking up, not for following: padding yields whatever is there.
pub(crate) fn words_of<T>(value: &T) -> Words<'_> {
    let start = core::ptr::from_ref(value).addr();
    let end = start + size_of_val(value);
    let next = start.next_multiple_of(size_of::<usize>());
    Words { next, end: if CAN_READ { end } else { next }, value: PhantomData }
}

/// The aligned words of a value but for those that lie in a part of it, which somebody else answers for.
#[cfg(any(feature = "std", feature = "indexmap"))]
pub(crate) fn words_around<'v, T, P>(
    value: &'v T,
    part: &P,
) -> impl Iterator<Item = usize> + Clone + 'v {
    let start = core::ptr::from_ref(part).addr();
    let hole = start..start + size_of::<P>();
    let words = words_of(value);
    let places = (words.next..).step_by(size_of::<usize>());
    places.zip(words).filter(move |(place, _)| !hole.contains(place)).map(|(_, word)| word)
}

/// See [`words_of`].
#[derive(Clone)]
pub(crate) struct Words<'v> {
    next: usize,
    end: usize,
    /// Invariant: what lies between `next` and `end` is lent.
    value: PhantomData<&'v ()>,
}

impl<'v> Words<'v> {
    /// The words of a live block that one of these leads to, as an owner.
    ///
    /// # Safety
    ///
    /// The value owns or shares a block of that start and size, so that it is not given back while the value is lent.
    #[cfg(feature = "std")]
    pub(crate) unsafe fn behind(&self, start: usize, size: usize) -> Words<'v> {
        Words { next: start, end: if CAN_READ { start + size } else { start }, value: PhantomData }
    }
}

impl Iterator for Words<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let address = self.next;
        if address + size_of::<usize>() > self.end {
            return None;
        }
        self.next += size_of::<usize>();
        // SAFETY: an aligned word of a value that is lent.
        Some(unsafe { read(address) })
    }
}

pub(crate) const CAN_READ: bool = cfg!(all(
    not(miri),
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
));

/// One word. Uninitialised memory has some value at the moment when the processor loads it, and so has memory that another
/// thread changes: for the language, this is a call whose result is just a number.
///
/// # Safety
///
/// `address` is aligned for a word, and one may be read there.
#[cfg(all(not(miri), target_pointer_width = "64", target_arch = "x86_64"))]
#[inline]
pub(crate) unsafe fn read(address: usize) -> usize {
    let word;
    // SAFETY: loads one readable word, by the caller's promise, and touches neither memory nor stack nor flags.
    unsafe {
        core::arch::asm!(
            "mov {word}, qword ptr [{address}]",
            address = in(reg) address,
            word = lateout(reg) word,
            options(readonly, nostack, preserves_flags),
        );
    }
    word
}

/// As on the other processor.
///
/// # Safety
///
/// `address` is aligned for a word, and one may be read there.
#[cfg(all(not(miri), target_pointer_width = "64", target_arch = "aarch64"))]
#[inline]
pub(crate) unsafe fn read(address: usize) -> usize {
    let word;
    // SAFETY: loads one readable word, by the caller's promise, and touches neither memory nor stack nor flags.
    unsafe {
        core::arch::asm!(
            "ldr {word}, [{address}]",
            address = in(reg) address,
            word = lateout(reg) word,
            options(readonly, nostack, preserves_flags),
        );
    }
    word
}

/// Never called: there are no words to read here.
///
/// # Safety
///
/// None.
#[cfg(not(all(
    not(miri),
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[inline]
pub(crate) unsafe fn read(_address: usize) -> usize {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct Padded {
        small: u8,
        first: usize,
        second: usize,
        last: u16,
    }

    #[test]
    fn whole_words_are_read_in_order() {
        let padded = Padded { small: 1, first: 0x1234, second: 0x5678, last: 2 };
        let words: Vec<usize> = words_of(&padded).collect();
        if CAN_READ {
            assert_eq!(words.len(), 4);
            assert_eq!(words[1..3], [padded.first, padded.second]);
            assert_eq!(
                (words[0] & 0xff, words[3] & 0xffff),
                (usize::from(padded.small), usize::from(padded.last))
            );
        } else {
            assert!(words.is_empty());
        }
    }

    #[test]
    fn what_is_smaller_than_a_word_has_none() {
        assert_eq!(words_of(&1_u32).count(), 0);
        assert_eq!(words_of(&()).count(), 0);
        assert_eq!(words_of(&[1_u8; 7]).count(), 0);
    }
}
