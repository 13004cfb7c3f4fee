//! Sites: where a block was allocated, on which thread, and in whose name. A site is a number that stands for all of it.
#![expect(clippy::cast_possible_truncation, reason = "fields are cut out of a word")]

use std::cell::Cell;

use memreport::__private::{OWN, current_on_alloc, current_scope};

use super::stack_cache::{Memo, StackHash};
use super::thread::{Inside, Thread};
use super::walk;
use crate::mem::interner::Interner;
use crate::sample::plan::{Plan, observed_rate};
use crate::sample::rate::Rate;
pub(crate) use crate::table::packed_block::SiteId;

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

/// Sites by the hash of stack and thread.
static MEMO: Memo = Memo::new();

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

/// In whose name this thread allocates now: the scope, and the reporter that counts its blocks from their birth.
#[inline(always)]
fn names() -> u32 {
    u32::from(current_scope()) << 16 | current_on_alloc() & 0xffff
}

/// The site of an allocation without a stack that happens here and now, if this thread remembers it.
#[inline(always)]
pub(crate) fn known_without_stack() -> Option<SiteId> {
    Thread::current(known_plain_site).flatten()
}

#[inline(always)]
fn known_plain_site(thread: &Thread) -> Option<SiteId> {
    let (of, number) = thread.plain_site.get();
    (number != 0 && of == names()).then(|| SiteId::from_number(number))
}

/// Whether an allocation of this many bytes that happens here and now is in the sample.
#[inline]
pub(crate) fn is_hit(usable: usize) -> bool {
    Thread::current(|thread| thread.sampler.takes(usable, || thread.number())).unwrap_or(false)
}

/// The site of an allocation of this many bytes that happens here and now. Under a plan that samples, it is in the sample.
#[inline(always)]
pub(crate) fn here(plan: Plan, usable: usize) -> Born {
    born(plan, usable, with_stack_here)
}

/// The same where it matters less how long it takes. The walk is compiled into the quick one, and a second copy would end that.
#[cold]
#[inline(never)]
pub(crate) fn here_at_leisure(plan: Plan, usable: usize) -> Born {
    born(plan, usable, with_stack_at_leisure)
}

#[cold]
#[inline(never)]
fn with_stack_at_leisure(thread: &Thread) -> SiteId {
    with_stack_here(thread)
}

#[inline(always)]
fn born(plan: Plan, usable: usize, with_stack_here: impl FnOnce(&Thread) -> SiteId) -> Born {
    let born = Thread::current(|thread| {
        let rate = if plan.samples() { thread.sampler.rate() } else { Rate::EVERY };
        let with_stack = plan.has_stacks()
            && (!plan.has_partial_stacks() || thread.sampler.takes(usable, || thread.number()));
        let site = if with_stack { with_stack_here(thread) } else { without_stack_here(thread) };
        Born { site, rate }
    });
    born.unwrap_or(Born { site: SiteId::UNKNOWN, rate: Rate::EVERY })
}

/// What is found out about a block while single allocations are observed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    pub(crate) site: SiteId,
    pub(crate) rate: Rate,
    /// The thread on which it happens, if it goes into the logs.
    pub(crate) logged_by: Option<u32>,
}

/// Draws for an allocation that happens here and now while single ones are observed; `None` if it does not enter.
pub(crate) fn drawn_here(plan: Plan, usable: usize) -> Option<Drawn> {
    Thread::current(|thread| {
        let rate = observed_rate();
        // The tracker's own are nobody's business.
        let wins = current_on_alloc() != OWN && thread.draws.wins(usable, rate, || thread.number());
        if !wins && !plan.enters_all() {
            return None;
        }
        let with_stack = wins || plan.has_stacks();
        let site =
            if with_stack { with_stack_at_leisure(thread) } else { without_stack_here(thread) };
        let rate = if plan.enters_all() { Rate::EVERY } else { rate };
        Some(Drawn { site, rate, logged_by: wins.then(|| thread.number()) })
    })
    .flatten()
}

fn without_stack_here(thread: &Thread) -> SiteId {
    if let Some(site) = known_plain_site(thread) {
        return site;
    }
    let names = names();
    let site = intern_site(0, names, thread);
    thread.plain_site.set((names, site.number()));
    site
}

/// Within the unwinder itself there is no stack.
#[inline(always)]
fn with_stack_here(thread: &Thread) -> SiteId {
    let Some(inside) = Inside::enter(thread) else { return without_stack_here(thread) };
    walk::walk(&inside);
    let names = names();
    let stack = hash_of_stack(thread);
    let hash = if names == 0 { stack } else { stack.with(names as usize) };
    match MEMO.get(hash) {
        Some(site) => site,
        None => find_out(hash, names, &inside),
    }
}

/// The hash of the thread's last stack. Of the frames that it has in common with the one before, it is known.
#[inline(always)]
fn hash_of_stack(thread: &Thread) -> StackHash {
    let stack = &thread.last_stack;
    let (known, length) = (stack.hashed.get(), stack.length.get());
    let outer = stack.hashes.get(known.wrapping_sub(1));
    let mut hash = outer.map_or_else(|| StackHash::of_thread(thread.number()), Cell::get);
    let frames = stack.frames.get(known..length).unwrap_or(&[]);
    let places = stack.hashes.get(known..length).unwrap_or(&[]);
    for (frame, place) in frames.iter().zip(places) {
        hash = hash.with(frame.get().address());
        place.set(hash);
    }
    stack.hashed.set(length);
    hash
}

/// The site of the thread's last stack, which has this hash together with the names.
#[cold]
#[inline(never)]
fn find_out(hash: StackHash, names: u32, inside: &Inside<'_>) -> SiteId {
    let stack = &inside.thread.last_stack;
    let frames = stack.frames.get(..stack.length.get()).unwrap_or(&[]).iter();
    let number = frames
        .fold(0, |outer, frame| FRAMES.intern((u64::from(outer), frame.get().address() as u64)));
    let site = intern_site(number, names, inside.thread);
    if site != SiteId::UNKNOWN {
        MEMO.put(hash, site);
    }
    site
}

#[cold]
#[inline(never)]
fn intern_site(stack: u32, names: u32, thread: &Thread) -> SiteId {
    let place = u64::from(stack) << 32 | u64::from(thread.number());
    SiteId::from_number(SITES.intern((place, u64::from(names))))
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
