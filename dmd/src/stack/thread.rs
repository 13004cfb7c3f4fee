//! What the tracker keeps for each thread, without a destructor: a hook may run after all destructors have.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::walk::last::LastStack;
use super::walk::tally;
use crate::mem::concurrent_vec::ConcurrentVec;
use crate::mem::sys;
use crate::mem::sys::StackBounds;
use crate::sample::sampler::{ObserverSampler, Sampler};

pub(crate) struct Thread {
    inside: Cell<bool>,
    /// This thread's number among those that the tracker has met, plus one; 0 is not met yet.
    number: Cell<u32>,
    bounds: Cell<Option<StackBounds>>,
    bounds_known: Cell<bool>,
    /// Where the walk leaves its frames.
    pub(crate) last_stack: LastStack,
    /// Where its walks are counted.
    walked: Cell<Option<&'static AtomicU64>>,
    /// In whose name this thread made its last block without a stack, and the site of it; 0 is not known yet.
    pub(crate) plain_site: Cell<(u32, u32)>,
    pub(crate) sampler: Sampler,
    /// Of those who observe single allocations.
    pub(crate) observer_sampler: ObserverSampler,
}

std::thread_local! {
    static THREAD: Thread = const {
        Thread {
            inside: Cell::new(false),
            number: Cell::new(0),
            bounds: Cell::new(None),
            bounds_known: Cell::new(false),
            last_stack: LastStack::new(),
            walked: Cell::new(None),
            plain_site: Cell::new((0, 0)),
            sampler: Sampler::new(),
            observer_sampler: ObserverSampler::new(),
        }
    };
}

/// The kernel's numbers of the threads that the tracker has met, by its own number.
static MET: ConcurrentVec<AtomicU32> = ConcurrentVec::new();
static MET_COUNT: AtomicU32 = AtomicU32::new(0);

impl Thread {
    /// This thread's.
    #[inline]
    pub(crate) fn current<R>(with: impl FnOnce(&Thread) -> R) -> Option<R> {
        THREAD.try_with(with).ok()
    }

    /// Its number, from 1.
    #[inline]
    pub(crate) fn number(&self) -> u32 {
        match self.number.get() {
            0 => self.meet(),
            number => number,
        }
    }

    #[cold]
    fn meet(&self) -> u32 {
        let number = MET_COUNT.fetch_add(1, Relaxed) + 1;
        if let Some(place) = MET.get_or_make(number as usize) {
            place.store(sys::thread_id(), Relaxed);
        }
        self.number.set(number);
        number
    }

    /// Where its stack is.
    #[inline]
    pub(crate) fn bounds(&self, _inside: &Inside<'_>) -> Option<StackBounds> {
        if !self.bounds_known.get() {
            self.find_bounds();
        }
        self.bounds.get()
    }

    /// A stack was walked, whole or not.
    #[inline(always)]
    pub(crate) fn count_walk(&self, is_whole: bool) {
        if self.walked.get().is_none() {
            self.walked.set(tally::walked_by(self.number()));
        }
        if let Some(walked) = self.walked.get() {
            tally::add_one(walked);
        }
        if !is_whole {
            tally::count_truncated(self.number());
        }
    }

    #[cold]
    fn find_bounds(&self) {
        let bounds = sys::stack_bounds();
        self.bounds.set(bounds);
        // The main thread's are known only once the program has started: ask again until then.
        self.bounds_known.set(bounds.is_some());
    }
}

/// The kernel's number of each thread that the tracker has met; the first is number 1.
pub(crate) fn met() -> impl Iterator<Item = (u32, u32)> {
    let last = MET_COUNT.load(Relaxed);
    (1..=last).filter_map(|number| Some((number, MET.get(number as usize)?.load(Relaxed))))
}

/// That this thread is inside the tracker. What it allocates meanwhile is entered without a stack, so that nothing recurses.
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
