//! Sites: where a block was allocated, on which thread, and in whose name. A site is a number that stands for all of it.
#![expect(clippy::cast_possible_truncation, reason = "fields are cut out of a word")]

use memreport::__private::current_on_alloc;

use super::interner::Interner;
use super::thread::{FRAME_MEMO, Inside, MEMO, Thread};
use super::walk;

/// The number of a site; 0 is one that nothing is known of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SiteId(u32);

impl SiteId {
    pub(crate) const UNKNOWN: SiteId = SiteId(0);

    #[inline]
    pub(crate) fn from_number(number: u32) -> Self {
        SiteId(number)
    }

    #[inline]
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// What a site stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    /// The number of the stack; 0 is none.
    pub(crate) stack: u32,
    /// The number of the thread, from 1.
    pub(crate) thread: u32,
    /// Which of the program's scopes was entered; 0 is none.
    pub(crate) scope: u16,
    /// The reporter that counts the block from its birth; 0 is none.
    pub(crate) on_alloc: u16,
}

/// A stack is the number of its innermost frame: pairs of (number of the outer frames, return address).
static FRAMES: Interner = Interner::new(1 << 31);

/// Pairs of (stack and thread, scope and reporter).
static SITES: Interner = Interner::new(1 << 24);

/// The site of an allocation that happens here and now.
#[inline(always)]
pub(crate) fn here(with_stack: bool) -> SiteId {
    Thread::current(|thread| {
        let Some(inside) = Inside::enter(thread) else { return SiteId::UNKNOWN };
        let stack = if with_stack {
            walk::walk(&inside);
            intern_stack(&inside)
        } else {
            0
        };
        intern_site(stack, &inside)
    })
    .unwrap_or(SiteId::UNKNOWN)
}

/// The number of the thread's last stack. Of the frames that it has in common with the one before, the numbers are known.
#[inline(always)]
fn intern_stack(inside: &Inside<'_>) -> u32 {
    let thread = inside.thread;
    let stack = &thread.last_stack;
    let (known, length) = (stack.numbered.get(), stack.length.get());
    let mut number = if known == 0 { 0 } else { stack.numbers[known - 1].get() };
    for (frame, place) in stack.frames[known..length].iter().zip(&stack.numbers[known..length]) {
        number = intern_frame(number, frame.get().address(), thread);
        place.set(number);
    }
    stack.numbered.set(length);
    number
}

/// The number of a stack by that of its outer frames and its innermost frame; 0 if there is no place for it.
#[inline]
fn intern_frame(outer: u32, frame: usize, thread: &Thread) -> u32 {
    let memo = &thread.frame_memo[(frame >> 2 ^ outer as usize) % FRAME_MEMO];
    let (known_frame, known_outer, number) = memo.get();
    if known_frame == frame && known_outer == outer && number != 0 {
        return number;
    }
    let number = FRAMES.intern((u64::from(outer), frame as u64));
    memo.set((frame, outer, number));
    number
}

#[inline]
fn intern_site(stack: u32, inside: &Inside<'_>) -> SiteId {
    let thread = inside.thread;
    let on_alloc = current_on_alloc();
    let memo = &thread.sites[stack as usize % MEMO];
    let (known, number) = memo.get();
    if known == stack && number != 0 && on_alloc == 0 {
        return SiteId(number);
    }
    let place = u64::from(stack) << 32 | u64::from(thread.number());
    let number = SITES.intern((place, u64::from(on_alloc & 0xffff)));
    if on_alloc == 0 {
        memo.set((stack, number));
    }
    SiteId(number)
}

/// What the site stands for; `None` of an unknown one.
pub(crate) fn site(id: SiteId) -> Option<Site> {
    let (place, names) = SITES.get(id.0)?;
    Some(Site {
        stack: (place >> 32) as u32,
        thread: place as u32,
        scope: (names >> 16) as u16,
        on_alloc: names as u16,
    })
}

/// The return addresses of a stack, the innermost first.
pub(crate) fn frames(stack: u32) -> impl Iterator<Item = usize> {
    let mut number = stack;
    std::iter::from_fn(move || {
        let (outer, frame) = FRAMES.get(number)?;
        number = outer as u32;
        Some(frame as usize)
    })
}
