//! The tracker's state of each thread. It has no destructor: hooks may run after all destructors.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::limits::thread_name_number;
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
}

pub(crate) struct Thread {
    inside: Cell<bool>,
    /// The tracker's number of this thread, from 1; 0 before it is registered.
    number: Cell<u32>,
    /// True if the thread is the tracker's or the server's: observers do not log it.
    is_own: Cell<bool>,
    bounds: Cell<Option<StackBounds>>,
    has_bounds: Cell<bool>,
    /// The frames of the last walk.
    pub(crate) last_stack: LastStack,
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

std::thread_local! {
    static THREAD: Thread = const {
        Thread {
            inside: Cell::new(false),
            number: Cell::new(0),
            is_own: Cell::new(false),
            bounds: Cell::new(None),
            has_bounds: Cell::new(false),
            last_stack: LastStack::new(),
            walked: Cell::new(None),
            site_without_stack: Cell::new(CachedSite { attribution: 0, site: 0 }),
            sampler: Sampler::new(),
            is_learning: Cell::new(false),
            observer_sampler: ObserverSampler::new(),
            named_for: Cell::new(0),
            is_recorder: Cell::new(false),
        }
    };
}

/// The kernel's numbers of the registered threads, by the tracker's number.
static SYSTEM_IDS: ConcurrentVec<AtomicU32> = ConcurrentVec::new();
/// The numbers of the names of threads, by the tracker's number; 0 if no observer needed the name.
static NAME_NUMBERS: ConcurrentVec<AtomicU64> = ConcurrentVec::new();
/// Is 1 for threads of the tracker and the server, by the tracker's number.
static IS_OWN: ConcurrentVec<AtomicU32> = ConcurrentVec::new();
static REGISTERED_COUNT: AtomicU32 = AtomicU32::new(0);

impl Thread {
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
            place.store(sys::with_own_thread_name(thread_name_number), Relaxed);
        }
    }

    #[cold]
    fn register(&self) -> u32 {
        let number = REGISTERED_COUNT.fetch_add(1, Relaxed) + 1;
        if let Some(place) = SYSTEM_IDS.get_or_alloc(number as usize) {
            place.store(sys::thread_id(), Relaxed);
        }
        self.number.set(number);
        number
    }

    /// Returns the bounds of this thread's stack.
    #[inline]
    pub(crate) fn bounds(&self, _inside: &Inside<'_>) -> Option<StackBounds> {
        if !self.has_bounds.get() {
            self.find_bounds();
        }
        self.bounds.get()
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
        let bounds = sys::stack_bounds();
        self.bounds.set(bounds);
        // The main thread's bounds are stored only when the program starts. Until then, try again.
        self.has_bounds.set(bounds.is_some());
    }
}

/// Marks this thread as the tracker's or the server's.
pub(crate) fn mark_own() {
    // A thread that ends allocates no more.
    let _ = Thread::current(|thread| {
        thread.is_own.set(true);
        if let Some(place) = IS_OWN.get_or_alloc(thread.number() as usize) {
            place.store(1, Relaxed);
        }
    });
}

/// Returns whether the thread of this number is the tracker's or the server's. What it allocated
/// before it was marked is its own as well.
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
    (1..=last).filter_map(|number| {
        let system_id = SYSTEM_IDS.get(number as usize)?.load(Relaxed);
        Some(RegisteredThread { number, system_id })
    })
}

/// A guard: this thread is inside the tracker. Meanwhile its allocations get no stack, so that
/// walks do not recurse.
pub(crate) struct Inside<'t> {
    pub(crate) thread: &'t Thread,
}

impl<'t> Inside<'t> {
    #[inline]
    pub(crate) fn enter(thread: &'t Thread) -> Option<Self> {
        (!thread.inside.replace(true)).then_some(Inside { thread })
    }
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.thread.inside.set(false);
    }
}
