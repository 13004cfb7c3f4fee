//! Sites of allocations and frees: a site is the number of a stack, a thread, a scope and a
//! reporter.
#![expect(clippy::cast_possible_truncation, reason = "fields are cut out of a word")]

use std::cell::Cell;

use memreport::__private::{OWN, current_on_alloc, current_scope};

use super::limits;
use super::own_code;
use super::stack_cache::{StackCache, StackHash};
use super::thread::{CachedSite, Inside, Thread};
use super::walk;
use crate::mem::interner::Interner;
use crate::sample::plan::{Plan, observed_rate};
use crate::sample::rate::SamplingRate;
pub(crate) use crate::table::packed_block::SiteId;

/// The content of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    /// The number of the stack; 0 is none.
    pub(crate) stack: u32,
    /// The number of the thread, from 1.
    pub(crate) thread: u32,
    /// The number of the innermost scope; 0 is none.
    pub(crate) scope: u16,
    /// The number of the reporter that claims the block from its allocation on; 0 is none.
    pub(crate) on_alloc: u16,
}

/// The interned stacks: pairs of the outer stack's number and a return address. A stack is the
/// number of its innermost frame.
static FRAMES: Interner = Interner::new(1 << 31);

/// The interned sites: pairs of stack and thread, and of scope and reporter.
static SITES: Interner = Interner::new(1 << 24);

/// Sites by the hash of stack and attribution.
static STACK_CACHE: StackCache = StackCache::new();

/// The site and the sampling rate of a block that is about to be inserted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewBlock {
    pub(crate) site: SiteId,
    pub(crate) rate: SamplingRate,
}

/// Returns whether the sampler skips an allocation of this many bytes. If not, [`is_sampled`]
/// decides.
#[inline(always)]
pub(crate) fn skips_sample(usable: usize) -> bool {
    Thread::current(|thread| thread.sampler.skips(usable)).unwrap_or(false)
}

/// Returns whether an allocation of this many bytes, at this moment on this thread, is sampled.
#[inline]
pub(crate) fn is_sampled(usable: usize) -> bool {
    Thread::current(|thread| thread.sampler.samples(usable, || thread.number())).unwrap_or(false)
}

/// Returns the scope of this thread, and the reporter that counts its new blocks, in one word.
#[inline(always)]
fn attribution() -> u32 {
    u32::from(current_scope()) << 16 | current_on_alloc() & 0xffff
}

/// Returns the site of an allocation without a stack, if this thread has cached it.
#[inline(always)]
pub(crate) fn cached_without_stack() -> Option<SiteId> {
    Thread::current(cached_site).flatten()
}

#[inline(always)]
fn cached_site(thread: &Thread) -> Option<SiteId> {
    let cached = thread.site_without_stack.get();
    (cached.site != 0 && cached.attribution == attribution())
        .then(|| SiteId::from_number(cached.site))
}

/// Returns the site and rate of a new block of this many bytes. Under a plan that samples, the
/// block is sampled.
#[inline(always)]
pub(crate) fn of_new_block(plan: Plan, usable: usize) -> NewBlock {
    new_block(plan, usable, with_stack)
}

/// Out-of-line variant of [`of_new_block`] for cold callers: one inlined copy of the stack walk is
/// enough.
#[cold]
#[inline(never)]
pub(crate) fn of_new_block_cold(plan: Plan, usable: usize) -> NewBlock {
    new_block(plan, usable, with_stack_cold)
}

/// Returns the site of a free: the stack, the thread and the scope of this moment.
#[cold]
#[inline(never)]
pub(crate) fn of_free() -> SiteId {
    Thread::current(with_stack_cold).unwrap_or(SiteId::UNKNOWN)
}

#[cold]
#[inline(never)]
fn with_stack_cold(thread: &Thread) -> SiteId {
    with_stack(thread)
}

#[inline(always)]
fn new_block(plan: Plan, usable: usize, with_stack: impl FnOnce(&Thread) -> SiteId) -> NewBlock {
    let block = Thread::current(|thread| {
        let rate = if plan.samples() { thread.sampler.rate() } else { SamplingRate::EVERY };
        let takes_stack = plan.has_stacks()
            && (!plan.has_partial_stacks() || thread.sampler.samples(usable, || thread.number()));
        let site = if takes_stack { with_stack(thread) } else { without_stack(thread) };
        NewBlock { site, rate }
    });
    block.unwrap_or(NewBlock { site: SiteId::UNKNOWN, rate: SamplingRate::EVERY })
}

/// The site of a block that is inserted while single allocations are observed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObservedBlock {
    pub(crate) site: SiteId,
    pub(crate) rate: SamplingRate,
    /// The number of the allocating thread, if the block goes into the logs.
    pub(crate) logged_by: Option<u32>,
}

/// Draws for a new block while single allocations are observed. Returns `None` if the block is not
/// inserted.
pub(crate) fn of_observed_block(plan: Plan, usable: usize) -> Option<ObservedBlock> {
    Thread::current(|thread| {
        let rate = observed_rate();
        // The tracker's own blocks are never logged.
        if thread.is_learning.get() {
            with_stack_cold(thread);
            return None;
        }
        let is_logged = current_on_alloc() != OWN
            && !thread.is_own()
            && limits::sees(thread)
            && thread.observer_sampler.samples(usable, rate, || thread.number());
        if !is_logged && !plan.inserts_all() {
            return None;
        }
        let takes_stack = is_logged || plan.has_stacks();
        let site = if takes_stack { with_stack_cold(thread) } else { without_stack(thread) };
        let rate = if plan.inserts_all() { SamplingRate::EVERY } else { rate };
        Some(ObservedBlock { site, rate, logged_by: is_logged.then(|| thread.number()) })
    })
    .flatten()
}

/// Returns the site without a stack of this thread and its attribution, and caches it.
fn without_stack(thread: &Thread) -> SiteId {
    if let Some(site) = cached_site(thread) {
        return site;
    }
    let attribution = attribution();
    let site = intern_site(0, attribution, thread);
    thread.site_without_stack.set(CachedSite { attribution, site: site.number() });
    site
}

/// Walks the stack and returns its site. A thread that is already inside the tracker gets no stack.
#[inline(always)]
fn with_stack(thread: &Thread) -> SiteId {
    let Some(inside) = Inside::enter(thread) else { return without_stack(thread) };
    walk::walk(&inside);
    let attribution = attribution();
    let stack = hash_of_stack(thread);
    let hash = if attribution == 0 { stack } else { stack.with_frame(attribution as usize) };
    match STACK_CACHE.get(hash) {
        Some(site) => site,
        None => intern_stack(hash, attribution, &inside),
    }
}

/// Returns the hash of the thread's last stack. Frames in common with the stack before are not
/// hashed again.
#[inline(always)]
fn hash_of_stack(thread: &Thread) -> StackHash {
    let stack = &thread.last_stack;
    let (known, length) = (stack.hashed.get(), stack.length.get());
    let outer = stack.hashes.get(known.wrapping_sub(1));
    let mut hash = outer.map_or_else(|| StackHash::of_thread(thread.number()), Cell::get);
    let frames = stack.frames.get(known..length).unwrap_or(&[]);
    let places = stack.hashes.get(known..length).unwrap_or(&[]);
    for (frame, place) in frames.iter().zip(places) {
        hash = hash.with_frame(frame.get().address());
        place.set(hash);
    }
    stack.hashed.set(length);
    hash
}

/// Interns the thread's last stack, and returns its site. `hash` is that of stack and attribution.
#[cold]
#[inline(never)]
fn intern_stack(hash: StackHash, attribution: u32, inside: &Inside<'_>) -> SiteId {
    let stack = &inside.thread.last_stack;
    let frames = stack.frames.get(..stack.length.get()).unwrap_or(&[]);
    let own = frames.iter().rev().take_while(|frame| own_code::contains(frame.get().address()));
    let (frames, _) = frames.split_at(frames.len() - own.count());
    // The C library allocates for the tracker, too, for its threads.
    let is_own = own_code::is_whole_module()
        && frames.iter().any(|frame| own_code::contains(frame.get().address()));
    let attribution = if is_own { attribution | OWN } else { attribution };
    let number = frames
        .iter()
        .fold(0, |outer, frame| FRAMES.intern((u64::from(outer), frame.get().address() as u64)));
    let site = intern_site(number, attribution, inside.thread);
    if site != SiteId::UNKNOWN {
        STACK_CACHE.insert(hash, site);
    }
    site
}

#[cold]
#[inline(never)]
fn intern_site(stack: u32, attribution: u32, thread: &Thread) -> SiteId {
    let place = u64::from(stack) << 32 | u64::from(thread.number());
    SiteId::from_number(SITES.intern((place, u64::from(attribution))))
}

/// Returns the content of a site; `None` of an unknown one.
pub(crate) fn site(id: SiteId) -> Option<Site> {
    let (place, attribution) = SITES.get(id.number())?;
    Some(Site {
        stack: (place >> 32) as u32,
        thread: place as u32,
        scope: (attribution >> 16) as u16,
        on_alloc: attribution as u16,
    })
}

/// Returns the return addresses of a stack, from the innermost frame outwards.
pub(crate) fn frames(stack: u32) -> impl Iterator<Item = usize> {
    let mut number = stack;
    std::iter::from_fn(move || {
        let (outer, frame) = FRAMES.get(number)?;
        number = outer as u32;
        Some(frame as usize)
    })
}
