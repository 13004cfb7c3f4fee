//! Sites: where a block was allocated, on which thread, and in whose name. A site is a number that stands for all of it.
#![expect(clippy::cast_possible_truncation, reason = "fields are cut out of a word")]

use memreport::__private::current_on_alloc;

pub(crate) use super::entry::SiteId;
use super::interner::Interner;
use super::plan::Plan;
use super::sample::Rate;
use super::thread::{FRAME_MEMO, Inside, MEMO, Thread};
use super::walk;

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

/// What is found out about a block that enters the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Born {
    pub(crate) site: SiteId,
    pub(crate) rate: Rate,
}

/// Whether it is quickly told that an allocation of this many bytes is not in the sample. If not, ask [`is_hit`].
#[inline(always)]
pub(crate) fn misses(usable: usize) -> bool {
    Thread::current(|thread| thread.sampler.misses(usable)).unwrap_or(false)
}

/// The site of an allocation without a stack that happens here and now, if this thread remembers it.
#[inline(always)]
pub(crate) fn known_without_stack() -> Option<SiteId> {
    if current_on_alloc() != 0 {
        return None;
    }
    Thread::current(|thread| match thread.sites[0].get() {
        (0, number) if number != 0 => Some(SiteId::from_number(number)),
        _ => None,
    })
    .flatten()
}

/// Whether an allocation of this many bytes that happens here and now is in the sample.
#[inline]
pub(crate) fn is_hit(usable: usize) -> bool {
    Thread::current(|thread| thread.sampler.takes(usable, || thread.number())).unwrap_or(false)
}

/// The site of an allocation of this many bytes that happens here and now. Under a plan that samples, it is in the sample.
#[inline(always)]
pub(crate) fn here(plan: Plan, usable: usize) -> Born {
    let born = Thread::current(|thread| {
        let rate = if plan.samples() { thread.sampler.rate() } else { Rate::EVERY };
        let with_stack = plan.has_stacks()
            && (!plan.has_partial_stacks() || thread.sampler.takes(usable, || thread.number()));
        let stack = if with_stack { stack_here(thread) } else { 0 };
        Born { site: intern_site(stack, thread), rate }
    });
    born.unwrap_or(Born { site: SiteId::UNKNOWN, rate: Rate::EVERY })
}

/// The number of the stack; 0 within the unwinder itself.
#[inline(always)]
fn stack_here(thread: &Thread) -> u32 {
    match Inside::enter(thread) {
        Some(inside) => {
            walk::walk(&inside);
            intern_stack(&inside)
        }
        None => 0,
    }
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

#[inline(always)]
fn intern_site(stack: u32, thread: &Thread) -> SiteId {
    let on_alloc = current_on_alloc();
    let memo = &thread.sites[stack as usize % MEMO];
    let (known, number) = memo.get();
    if known == stack && number != 0 && on_alloc == 0 {
        return SiteId::from_number(number);
    }
    intern_new_site(stack, on_alloc, thread)
}

#[cold]
#[inline(never)]
fn intern_new_site(stack: u32, on_alloc: u32, thread: &Thread) -> SiteId {
    let place = u64::from(stack) << 32 | u64::from(thread.number());
    let number = SITES.intern((place, u64::from(on_alloc & 0xffff)));
    if on_alloc == 0 {
        thread.sites[stack as usize % MEMO].set((stack, number));
    }
    SiteId::from_number(number)
}

/// What the site stands for; `None` of an unknown one.
pub(crate) fn site(id: SiteId) -> Option<Site> {
    let (place, names) = SITES.get(id.number())?;
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
