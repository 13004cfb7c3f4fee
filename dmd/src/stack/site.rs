//! Sites of allocations and frees: a site is the number of a stack, a thread, a scope and a
//! reporter.
#![expect(clippy::cast_possible_truncation, reason = "fields are cut out of a word")]

use std::cell::Cell;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use memreport::__private::{OWN, ThreadSlot, current_attribution as attribution, current_on_alloc};

use super::limits;
use super::own_code;
use super::stack_cache::{StackCache, StackHash};
use super::thread::{CachedSite, Inside, Thread};
use super::walk::last::LastStack;
use super::walk::{self, Chain};
use crate::mem::interner::Interner;
use crate::sample::plan::{self, Plan, observed_rate};
use crate::sample::rate::SamplingRate;
use crate::sample::{sampler, stops};
use crate::table::epoch::Epoch;
use crate::table::packed_block::PackedBlock;
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

/// The number of allocations that got no site or no stack because a table was full.
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Sites by the hash of stack and attribution.
static STACK_CACHE: StackCache = StackCache::new();

/// The site and the sampling rate of a block that is about to be inserted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewBlock {
    pub(crate) site: SiteId,
    pub(crate) rate: SamplingRate,
}

/// Returns whether an allocation of this many bytes, which the thread has just counted, is sampled.
pub(crate) fn is_sampled(usable: usize) -> bool {
    let is_sampled = |thread: &Thread| {
        if let Some(slot) = ThreadSlot::current() {
            let after = slot.allocated_bytes();
            thread.sampler.catch_up(after.wrapping_sub(usable as u64), after);
        }
        thread.sampler.samples(usable, || thread.number())
    };
    Thread::current(is_sampled).unwrap_or(false)
}

/// Sets the stop of this thread under this plan, which has stops.
pub(crate) fn set_stop(plan: Plan) {
    let Some(slot) = ThreadSlot::current() else { return };
    let rate = sampler::rate();
    let next_success = |thread: &Thread| thread.sampler.next_success(rate);
    let stop = match plan.samples() {
        true => Thread::current(next_success).flatten().unwrap_or(stops::AT_ONCE),
        false => stops::NEVER,
    };
    stops::set(slot.stop(), stop, || plan::plan() == plan && sampler::rate() == rate);
}

/// Makes the next block of this thread a sampled one, if blocks are sampled.
pub(crate) fn sample_next() {
    let counted = ThreadSlot::current().map_or(0, |slot| {
        slot.stop().store(stops::AT_ONCE, Relaxed);
        slot.allocated_bytes()
    });
    // A thread that ends allocates no more.
    let _ = Thread::current(|thread| thread.sampler.sample_next(counted));
}

/// Returns the word of a new block without a stack but for its sizes, if it is prepared for this
/// plan.
#[inline(always)]
pub(crate) fn prepared_word(plan: Plan, slot: ThreadSlot) -> Option<u64> {
    // Relaxed: only this thread writes them.
    let prepared = slot.prepared();
    if prepared.plan.load(Relaxed) != plan.word()
        || prepared.attribution.load(Relaxed) != attribution()
    {
        return None;
    }
    Some(prepared.word.load(Relaxed))
}

/// Prepares the word of this thread's next blocks, if they are inserted without a stack.
fn prepare_word(plan: Plan, site: SiteId) {
    let Some(slot) = ThreadSlot::current() else { return };
    if plan.inserts_prepared() && site != SiteId::UNKNOWN {
        let word = PackedBlock::without_sizes(site, Epoch::from_number(plan.epoch()));
        let prepared = slot.prepared();
        prepared.plan.store(plan.word(), Relaxed);
        prepared.attribution.store(attribution(), Relaxed);
        prepared.word.store(word, Relaxed);
    }
}

#[inline(always)]
fn cached_site(thread: &Thread) -> Option<SiteId> {
    let cached = thread.site_without_stack.get();
    (cached.site != 0 && cached.attribution == attribution())
        .then(|| SiteId::from_number(cached.site))
}

/// Returns the site and rate of a new block of this many bytes. Under a plan that samples, the
/// block is sampled.
// Not generic, and not inlined into generic callers: in this crate, statics take one load less.
#[inline(never)]
pub(crate) fn of_new_block(plan: Plan, usable: usize) -> NewBlock {
    new_block(plan, usable, with_stack)
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
        if !takes_stack {
            prepare_word(plan, site);
        }
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
        let is_seen = current_on_alloc() != OWN && !thread.is_own() && limits::sees(thread);
        // A profile is of all blocks, also of those that no observer sees.
        let is_sampled = (is_seen || plan.samples())
            && thread.observer_sampler.samples(usable, rate, || thread.number());
        if !is_sampled && !plan.inserts_all() {
            return None;
        }
        let is_logged = is_seen && is_sampled;
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
    let Some(last) = inside.last_stack() else { return without_stack(thread) };
    let attribution = attribution();
    match walk::find(last, &inside, attribution, look_up) {
        Ok(site) => return site,
        Err(Some(chain)) => {
            let hash = chain.hash.with_attribution(attribution);
            if walk::follow(chain, last, &inside) {
                return intern_stack(last, hash, attribution, thread);
            }
            walk::walk(last, &inside);
            if walk::is_along(chain, last) {
                return intern_stack(last, hash, attribution, thread);
            }
        }
        Err(None) => walk::walk(last, &inside),
    }
    let hash = hash_of_stack(last, last.seed_of(|| thread.number())).with_attribution(attribution);
    match STACK_CACHE.get(hash) {
        Some(site) => site,
        None => intern_stack(last, hash, attribution, thread),
    }
}

/// Returns the site of a chain that is known, and counts a walk.
#[inline(always)]
fn look_up(chain: Chain, attribution: u32, thread: &Thread) -> Option<SiteId> {
    let site = STACK_CACHE.get(chain.hash.with_attribution(attribution))?;
    thread.count_walk(chain.is_complete);
    Some(site)
}

/// Returns the hash of the thread's last stack. Frames in common with the stack before are not
/// hashed again.
#[cfg_attr(not(debug_assertions), inline(always))]
fn hash_of_stack(stack: &LastStack, seed: StackHash) -> StackHash {
    let length = stack.length.get();
    // In pairs.
    let known = stack.hashed.get() & !1;
    let outer = stack.hashes.get(known.wrapping_sub(1));
    let mut hash = outer.map_or(seed, Cell::get);
    let (Some(frames), Some(places)) =
        (stack.frames.get(known..length), stack.hashes.get(known..length))
    else {
        return hash;
    };
    let (pairs, rest) = frames.as_chunks::<2>();
    for (pair, [_, place]) in pairs.iter().zip(places.as_chunks::<2>().0) {
        let [outer, inner] = pair.each_ref().map(|frame| frame.get().address());
        hash = hash.with_frames([inner, outer]);
        place.set(hash);
    }
    stack.hashed.set(length & !1);
    rest.iter().fold(hash, |hash, frame| hash.with_frame(frame.get().address()))
}

/// Interns the thread's last stack, and returns its site. `hash` is that of stack and attribution.
#[cold]
#[inline(never)]
fn intern_stack(stack: &LastStack, hash: StackHash, attribution: u32, thread: &Thread) -> SiteId {
    let frames = stack.frames.get(..stack.length.get()).unwrap_or(&[]);
    let own = frames.iter().rev().take_while(|frame| own_code::contains(frame.get().address()));
    let (frames, _) = frames.split_at(frames.len() - own.count());
    // The C library allocates for the tracker, too, for its threads.
    let is_own = own_code::is_whole_module()
        && frames.iter().any(|frame| own_code::contains(frame.get().address()));
    let attribution = if is_own { attribution | OWN } else { attribution };
    let Some(number) = intern_frames(&FRAMES, stack, frames.len()) else {
        REFUSED.fetch_add(1, Relaxed);
        return without_stack(thread);
    };
    let site = intern_site(number, attribution, thread);
    if site != SiteId::UNKNOWN {
        STACK_CACHE.insert(hash, site);
    }
    site
}

/// Interns the `count` outermost frames of a stack, and returns its number; 0 is an empty one.
/// Frames in common with the stack before are not interned again. Returns `None` if there is no
/// space: a stack of some of the frames would be a wrong one.
fn intern_frames(interner: &Interner, stack: &LastStack, count: usize) -> Option<u32> {
    let known = stack.interned.get().min(count);
    let before = stack.numbers.get(known.wrapping_sub(1)).map_or(0, Cell::get);
    let frames = stack.frames.get(known..count).unwrap_or(&[]);
    let mut places = stack.numbers.get(known..).unwrap_or(&[]).iter();
    let keep = |number| _ = places.next().map(|place| place.set(number));
    let addresses = frames.iter().map(|frame| frame.get().address() as u64);
    let number = interner.intern_list(before, addresses, keep)?;
    stack.interned.set(count);
    Some(number)
}

#[cold]
#[inline(never)]
fn intern_site(stack: u32, attribution: u32, thread: &Thread) -> SiteId {
    let place = u64::from(stack) << 32 | u64::from(thread.number());
    let number = SITES.intern((place, u64::from(attribution)));
    if number == 0 {
        REFUSED.fetch_add(1, Relaxed);
    }
    SiteId::from_number(number)
}

/// Returns the number of allocations so far that got no site or no stack because a table was full.
pub(crate) fn refused() -> u64 {
    REFUSED.load(Relaxed)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_that_does_not_fit_is_refused_whole() {
        // Numbers from 1 to 4.
        let interner = Interner::new(5);
        let last = LastStack::new();
        // From the innermost frame outwards.
        let stack = |frames: &[usize]| {
            last.replace_by_addresses(frames);
            intern_frames(&interner, &last, frames.len())
        };
        assert_eq!(stack(&[]), Some(0));
        assert_eq!(stack(&[30, 20, 10]), Some(3));
        assert_eq!(stack(&[40, 31, 20, 10]), None);
        // What is there is still found.
        assert_eq!(stack(&[30, 20, 10]), Some(3));
        assert_eq!(stack(&[11]), None);
    }

    #[test]
    fn frames_in_common_with_the_stack_before_are_not_interned_again() {
        let interner = Interner::new(100);
        let last = LastStack::new();
        last.replace_by_addresses(&[30, 20, 10]);
        assert_eq!(intern_frames(&interner, &last, 3), Some(3));
        let numbers = || last.numbers.iter().map(Cell::get).take(last.interned.get());
        assert!(numbers().eq([1, 2, 3]));
        // The walk keeps two frames, and finds two new ones.
        for (place, address) in last.places(0).zip([50, 40]) {
            let mut frame = last.frames[0].get();
            frame.registers.instruction = address;
            place.set(frame);
        }
        assert!(last.commit(2, 2, 0, false));
        assert_eq!(last.interned.get(), 2);
        // The innermost frame is the tracker's.
        assert_eq!(intern_frames(&interner, &last, 3), Some(4));
        assert!(numbers().eq([1, 2, 4]));
        assert_eq!(interner.get(4), Some((2, 40)));
        assert_eq!(intern_frames(&interner, &last, 4), Some(5));
        assert_eq!(intern_frames(&interner, &last, 2), Some(2));
    }
}
