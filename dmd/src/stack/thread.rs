//! The tracker's state of each thread. It has no destructor: hooks may run after all destructors.
//!
//! Each of the first 1,024 threads has a number of its own. After them a thread takes the number of
//! one that has ended, if there is any, so that a program may start threads without end: sites,
//! counters and names are kept by number. The blocks of all threads of a number are attributed to
//! it, and its name tells that it had several.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use memreport::__private::ThreadSlot;

use super::last_stacks;
use super::limits::thread_name_number;
use super::stack_cache::StackHash;
use super::walk::last::LastStack;
use super::walk::tally;
use crate::mem::concurrent_vec::ConcurrentVec;
use crate::mem::sys;
use crate::mem::sys::StackBounds;
use crate::sample::sampler::{ObserverSampler, Sampler};

/// The site of a thread's last allocation without a stack.
#[derive(Clone, Copy)]
pub(crate) struct CachedSite {
    /// The attribution that the site was interned for.
    pub(crate) attribution: u32,
    /// The number of the site; 0 is none yet.
    pub(crate) site: u32,
}

/// A thread that the tracker has registered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegisteredThread {
    /// The tracker's number, from 1.
    pub(crate) number: u32,
    /// The kernel's number.
    pub(crate) system_id: u32,
    /// Its `pthread_t`.
    pub(crate) handle: usize,
    /// The number of threads that had the number before and have ended.
    ended: u32,
}

impl RegisteredThread {
    /// Returns the name of the thread; `None` if it has ended. If the number had several threads,
    /// the name states it.
    pub(crate) fn name(&self) -> Option<String> {
        let name = sys::thread_name(self.system_id);
        let ended = self.ended;
        match name {
            name if ended == 0 => name,
            Some(name) => Some(format!("{name}, or one of {ended} ended threads")),
            None => Some(format!("one of {} ended threads", ended + 1)),
        }
    }
}

pub(crate) struct Thread {
    inside: Cell<bool>,
    /// The tracker's number of this thread, from 1; 0 before it is registered.
    number: Cell<u32>,
    /// True if the thread is the tracker's or the server's: observers do not log it.
    is_own: Cell<bool>,
    /// The bounds of its stack; zeros if they are not known yet.
    bounds: Cell<StackBounds>,
    /// The thread's counter of walks.
    walked: Cell<Option<&'static AtomicU64>>,
    /// The site of this thread's last allocation without a stack.
    pub(crate) site_without_stack: Cell<CachedSite>,
    pub(crate) sampler: Sampler,
    /// True while the thread learns which frames are the tracker's own.
    pub(crate) is_learning: Cell<bool>,
    /// The sampler of observers.
    pub(crate) observer_sampler: ObserverSampler,
    /// The value of `limits` for which the thread has read its name last.
    named_for: Cell<u32>,
    /// True of a thread that writes a recording: it never waits for room, and its own blocks are
    /// not recorded.
    pub(crate) is_recorder: Cell<bool>,
}

memreport::__hook_local! {
    static THREAD: Thread = Thread::new(), "dmd_hook_thread"
}

/// The kernel's numbers of the registered threads, by the tracker's number.
static SYSTEM_IDS: ConcurrentVec<AtomicU32> = ConcurrentVec::new();
/// The `pthread_t` of the registered threads, by the tracker's number.
static HANDLES: ConcurrentVec<AtomicU64> = ConcurrentVec::new();
/// The numbers of the names of threads, by the tracker's number; 0 if no observer needed the name.
static NAME_NUMBERS: ConcurrentVec<AtomicU64> = ConcurrentVec::new();
/// Is 1 for threads of the tracker and the server, by the tracker's number.
static IS_OWN: ConcurrentVec<AtomicU32> = ConcurrentVec::new();
/// The number of threads that had a number before and have ended, by the tracker's number.
static ENDED: ConcurrentVec<AtomicU32> = ConcurrentVec::new();
static REGISTERED_COUNT: AtomicU32 = AtomicU32::new(0);

/// The number of threads of which each has a number of its own.
const NUMBERS: u32 = 1024;

/// The last number that was looked at for an ended thread.
static SEARCHED: AtomicU32 = AtomicU32::new(0);

/// The numbers that a search looks at. It takes a system call for each.
const SEARCH: u32 = 8;

/// The numbers of own threads: the server has one for each client. They are never taken by other
/// threads. Beyond these places, own threads get new numbers.
static OWN_NUMBERS: [AtomicU32; 32] = [const { AtomicU32::new(0) }; 32];

impl Thread {
    /// Returns the state of a new thread, which is all zeros.
    const fn new() -> Self {
        Thread {
            inside: Cell::new(false),
            number: Cell::new(0),
            is_own: Cell::new(false),
            bounds: Cell::new(StackBounds { low: 0, high: 0 }),
            walked: Cell::new(None),
            site_without_stack: Cell::new(CachedSite { attribution: 0, site: 0 }),
            sampler: Sampler::new(),
            is_learning: Cell::new(false),
            observer_sampler: ObserverSampler::new(),
            named_for: Cell::new(0),
            is_recorder: Cell::new(false),
        }
    }

    /// Calls `with` on the state of this thread. Returns `None` if the thread ends.
    #[inline]
    pub(crate) fn current<R>(with: impl FnOnce(&Thread) -> R) -> Option<R> {
        THREAD.try_with(with).ok()
    }

    /// Returns the tracker's number of this thread, from 1.
    #[inline]
    pub(crate) fn number(&self) -> u32 {
        match self.number.get() {
            0 => self.register(),
            number => number,
        }
    }

    /// Returns whether observers do not log this thread.
    #[inline]
    pub(crate) fn is_own(&self) -> bool {
        self.is_own.get()
    }

    /// Reads the thread's name, once for each value of `limits`.
    pub(crate) fn learn_name(&self, names: u32) {
        if self.named_for.replace(names) == names {
            return;
        }
        if let Some(place) = NAME_NUMBERS.get_or_alloc(self.number() as usize) {
            place.store(thread_name_number(sys::own_thread_name().bytes()), Relaxed);
        }
    }

    #[cold]
    fn register(&self) -> u32 {
        let number = of_ended_thread().unwrap_or_else(new_number);
        self.number.set(number);
        store_handle(number);
        number
    }

    /// Gives the thread another number.
    fn renumber(&self, number: u32) {
        self.number.set(number);
        store_handle(number);
        // These depend on the number.
        self.site_without_stack.set(CachedSite { attribution: 0, site: 0 });
        if let Some(slot) = ThreadSlot::current() {
            slot.prepared().plan.store(0, Relaxed);
        }
        if let Some(stack) = last_stacks::known() {
            stack.hashed.set(0);
            stack.seed.set(StackHash::EMPTY);
        }
        self.walked.set(None);
    }

    /// Returns the bounds of this thread's stack.
    #[inline]
    pub(crate) fn bounds(&self, _inside: &Inside<'_>) -> Option<StackBounds> {
        if self.bounds.get().high == 0 {
            self.find_bounds();
        }
        Some(self.bounds.get()).filter(|bounds| bounds.high != 0)
    }

    /// Counts a walk, and whether it was truncated.
    #[inline(always)]
    pub(crate) fn count_walk(&self, is_complete: bool) {
        if self.walked.get().is_none() {
            self.walked.set(tally::walk_count(self.number()));
        }
        if let Some(walked) = self.walked.get() {
            tally::increment(walked);
        }
        if !is_complete {
            tally::count_truncated(self.number());
        }
    }

    #[cold]
    fn find_bounds(&self) {
        // The main thread's bounds are stored only when the program starts. Until then, try again.
        if let Some(bounds) = sys::stack_bounds() {
            self.bounds.set(bounds);
        }
    }
}

/// Stores this thread's handle for its number.
fn store_handle(number: u32) {
    if let Some(place) = HANDLES.get_or_alloc(number as usize) {
        place.store(sys::thread_handle() as u64, Relaxed);
    }
}

/// Returns a number that no thread had.
fn new_number() -> u32 {
    let number = REGISTERED_COUNT.fetch_add(1, Relaxed) + 1;
    if let Some(place) = SYSTEM_IDS.get_or_alloc(number as usize) {
        place.store(sys::thread_id(), Relaxed);
    }
    number
}

/// Takes the number of an ended thread, once there are many numbers.
fn of_ended_thread() -> Option<u32> {
    let last = REGISTERED_COUNT.load(Relaxed);
    if last < NUMBERS {
        return None;
    }
    (0..SEARCH).find_map(|_| {
        let number = SEARCHED.fetch_add(1, Relaxed) % last + 1;
        (!is_own(number)).then(|| take(number))?
    })
}

/// Takes this number for this thread, if its thread has ended.
///
/// In a forked child the parent's threads have ended, but for the forking thread, which lives on
/// under another number of the kernel's ([`renumber_in_child`]).
fn take(number: u32) -> Option<u32> {
    let index = number as usize;
    let place = SYSTEM_IDS.get(index)?;
    let id = place.load(Relaxed);
    // A thread that is about to register has no number of the kernel's yet.
    if id == 0 || sys::is_thread(id) {
        return None;
    }
    // Relaxed: the exchange only elects the thread that takes the number.
    place.compare_exchange(id, sys::thread_id(), Relaxed, Relaxed).ok()?;
    if let Some(name) = NAME_NUMBERS.get(index) {
        name.store(0, Relaxed);
    }
    if let Some(ended) = ENDED.get_or_alloc(index) {
        ended.fetch_add(1, Relaxed);
    }
    Some(number)
}

/// Stores the kernel's number of this thread again, the only one of a forked child. Runs in the
/// child.
pub(crate) extern "C" fn renumber_in_child() {
    let _ = THREAD.try_with(|thread| {
        let place = SYSTEM_IDS.get(thread.number.get() as usize);
        // 0 stands for no number: the thread will register under the child's.
        if let Some(place) = place.filter(|_| thread.number.get() != 0) {
            place.store(sys::thread_id(), Relaxed);
        }
    });
}

/// Marks this thread as the tracker's or the server's.
pub(crate) fn mark_own() {
    // A thread that ends allocates no more.
    let _ = Thread::current(|thread| {
        thread.is_own.set(true);
        let number = thread.number();
        if is_own(number) {
            return;
        }
        if REGISTERED_COUNT.load(Relaxed) >= NUMBERS {
            // The number may have been another thread's, whose blocks are not own.
            let ended = OWN_NUMBERS.iter().find_map(|own| match own.load(Relaxed) {
                0 => None,
                own => take(own),
            });
            if let Some(number) = ended {
                return thread.renumber(number);
            }
            thread.renumber(new_number());
        }
        let number = thread.number();
        if let Some(place) = IS_OWN.get_or_alloc(number as usize) {
            place.store(1, Relaxed);
        }
        let _ = OWN_NUMBERS
            .iter()
            .find(|place| place.compare_exchange(0, number, Relaxed, Relaxed).is_ok());
    });
}

/// Returns whether the thread of this number is the tracker's or the server's. In a program of few
/// threads, what it allocated before it was marked is its own as well.
pub(crate) fn is_own(number: u32) -> bool {
    IS_OWN.get(number as usize).is_some_and(|place| place.load(Relaxed) == 1)
}

/// Returns the numbers that `limits` compares: the kernel's number and the name's.
pub(crate) fn numbers(number: u32) -> [u64; 2] {
    let index = number as usize;
    let id = SYSTEM_IDS.get(index).map_or(0, |place| place.load(Relaxed).into());
    [id, NAME_NUMBERS.get(index).map_or(0, |place| place.load(Relaxed))]
}

/// Returns all registered threads, from number 1.
pub(crate) fn registered() -> impl Iterator<Item = RegisteredThread> {
    // Relaxed: a thread may be counted before its kernel number is stored, which is then 0.
    let last = REGISTERED_COUNT.load(Relaxed);
    (1..=last).filter_map(registered_as)
}

/// Returns the thread of this number.
pub(crate) fn registered_as(number: u32) -> Option<RegisteredThread> {
    let index = number as usize;
    let system_id = SYSTEM_IDS.get(index)?.load(Relaxed);
    let ended = ENDED.get(index).map_or(0, |ended| ended.load(Relaxed));
    let handle = HANDLES.get(index).map_or(0, |handle| handle.load(Relaxed));
    let handle = usize::try_from(handle).unwrap_or(0);
    Some(RegisteredThread { number, system_id, handle, ended })
}

/// A guard: this thread is inside the tracker. Meanwhile its allocations get no stack, so that
/// walks do not recurse.
pub(crate) struct Inside<'t> {
    pub(crate) thread: &'t Thread,
}

impl<'t> Inside<'t> {
    #[inline]
    pub(crate) fn enter(thread: &'t Thread) -> Option<Self> {
        if thread.inside.get() {
            return None;
        }
        thread.inside.set(true);
        Some(Inside { thread })
    }

    /// Returns the frames of this thread's last walk. Returns `None` when memory is short.
    #[inline(always)]
    pub(crate) fn last_stack(&self) -> Option<&'static LastStack> {
        last_stacks::known_or_taken()
    }
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.thread.inside.set(false);
    }
}

#[cfg(test)]
mod tests;
