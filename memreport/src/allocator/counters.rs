//! Counts allocated and freed blocks and bytes, in one slot per thread so that threads do not
//! contend.
#![expect(unsafe_code, reason = "asks the C library which thread this is, and reads its slot")]

use core::cell::Cell;
use core::ffi::c_void;
use core::num::NonZeroUsize;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::thread_end::ThreadEnd;

mod watch;

pub use watch::HeapWatch;

/// Counts of the allocator's work since the program began. All sizes are usable bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapCounters {
    /// Bytes allocated. A reallocation counts as a free and an allocation.
    pub allocated_bytes: u64,
    /// Blocks allocated.
    pub allocations: u64,
    /// Bytes freed.
    pub freed_bytes: u64,
    /// Blocks freed.
    pub frees: u64,
}

impl HeapCounters {
    /// Returns the usable bytes in live blocks.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        self.allocated_bytes.saturating_sub(self.freed_bytes)
    }

    /// Returns the number of live blocks.
    #[must_use]
    pub fn live_blocks(&self) -> u64 {
        self.allocations.saturating_sub(self.frees)
    }
}

/// The bytes that may be freed while the slots are read: less does not show in any figure.
const UNSETTLED: u64 = 64 * 1024;

/// The most readings of all slots. Threads that free more meanwhile in each of them are counted as
/// they were in the best one.
const READINGS: usize = 4;

/// Returns the sums of all slots.
pub(crate) fn totals() -> HeapCounters {
    settled(Reading::take)
}

/// A reading of all slots, one after the other, which takes as long as the thread is interrupted.
#[derive(Clone, Copy)]
struct Reading {
    sum: HeapCounters,
    /// The bytes that were freed after the frees were read and before the end.
    freed_meanwhile: u64,
}

impl Reading {
    fn take() -> Self {
        // The fewer slots, the sooner, and the less is freed meanwhile.
        let slots = || SLOTS.iter().take(USED_SLOTS.load(Acquire)).chain([&COMMON]);
        let mut sum = HeapCounters::default();
        // Frees first: a block allocated and freed between the two loops must not appear only as
        // freed.
        for slot in slots() {
            sum.freed_bytes += slot.freed_bytes.load(Relaxed);
            sum.frees += slot.frees.load(Relaxed);
        }
        for slot in slots() {
            sum.allocated_bytes += slot.allocated_bytes.load(Relaxed);
            sum.allocations += slot.allocations.load(Relaxed);
        }
        let freed: u64 = slots().map(|slot| slot.freed_bytes.load(Relaxed)).sum();
        Reading { sum, freed_meanwhile: freed.saturating_sub(sum.freed_bytes) }
    }
}

/// Reads until nearly nothing is freed meanwhile: such blocks count as allocated and not as freed.
fn settled(mut read: impl FnMut() -> Reading) -> HeapCounters {
    let mut best = read();
    for _ in 1..READINGS {
        if best.freed_meanwhile <= UNSETTLED {
            break;
        }
        let next = read();
        if next.freed_meanwhile < best.freed_meanwhile {
            best = next;
        }
    }
    best.sum
}

/// Returns the counters of this thread and of ended threads that counted in the same slot. Returns
/// `None` if this thread shares its slot with others. Differences between two calls are its own.
#[must_use]
pub fn thread_counters() -> Option<HeapCounters> {
    let slot = OWN.try_with(Cell::get).ok()??;
    Some(HeapCounters {
        allocated_bytes: slot.allocated_bytes.load(Relaxed),
        allocations: slot.allocations.load(Relaxed),
        freed_bytes: slot.freed_bytes.load(Relaxed),
        frees: slot.frees.load(Relaxed),
    })
}

/// The counters of this thread, which only it writes.
#[derive(Clone, Copy, Debug)]
pub struct ThreadSlot(&'static Slot);

impl ThreadSlot {
    /// Returns the counters of this thread. Returns `None` before its first block, at the end of
    /// its life, and if it shares its slot with others.
    #[inline(always)]
    #[must_use]
    pub fn current() -> Option<Self> {
        OWN.try_with(Cell::get).ok().flatten().map(ThreadSlot)
    }

    /// Returns the counters of this thread. If it has none, returns counters whose
    /// [`stop`](Self::stop) is reached with every block. Nothing is counted in these.
    #[inline(always)]
    #[must_use]
    pub fn current_or_stopped() -> Self {
        ThreadSlot(own_or_stopped())
    }

    /// Counts an allocated block of this many usable bytes and returns `true`. Returns `false` and
    /// counts nothing if the sum of the thread's allocated bytes would reach its
    /// [`stop`](Self::stop).
    #[inline(always)]
    #[must_use]
    pub fn counts_before_stop(self, bytes: usize) -> bool {
        let is_before = self.allocated_bytes() + (bytes as u64) < self.stop().load(Relaxed);
        if is_before {
            self.count_allocated(bytes);
        }
        is_before
    }

    /// Returns what the tracker has prepared for this thread's next blocks. It has zeros in a new
    /// thread, and in a thread without counters.
    #[inline(always)]
    #[must_use]
    pub fn prepared(self) -> &'static PreparedWord {
        &self.0.prepared
    }

    /// Returns the bytes that this thread, and ended threads with the same slot, have allocated.
    #[inline(always)]
    #[must_use]
    pub fn allocated_bytes(self) -> u64 {
        self.0.allocated_bytes.load(Relaxed)
    }

    /// Returns the sum of allocated bytes at which the tracker looks at a new block; 0 in a new
    /// thread. The tracker sets it; so do other threads.
    #[inline(always)]
    #[must_use]
    pub fn stop(self) -> &'static AtomicU64 {
        &self.0.stop
    }

    /// Counts an allocated block of this many usable bytes.
    #[inline(always)]
    pub fn count_allocated(self, bytes: usize) {
        add(&self.0.allocated_bytes, bytes as u64);
        add(&self.0.allocations, 1);
    }

    /// Counts a block of this many usable bytes that is about to be freed.
    #[inline(always)]
    pub fn count_freed(self, bytes: usize) {
        add(&self.0.freed_bytes, bytes as u64);
        add(&self.0.frees, 1);
    }
}

/// A word that the tracker has prepared, and what it holds for. Only its thread writes it.
#[derive(Debug)]
pub struct PreparedWord {
    /// The tracker's plan; 0 if nothing is prepared.
    pub plan: AtomicU32,
    /// The scope and the reporter.
    pub attribution: AtomicU32,
    /// The word.
    pub word: AtomicU64,
}

impl PreparedWord {
    const fn new() -> Self {
        PreparedWord {
            plan: AtomicU32::new(0),
            attribution: AtomicU32::new(0),
            word: AtomicU64::new(0),
        }
    }
}

/// Returns the [`stop`](ThreadSlot::stop) of every thread that has a slot, and of ended ones.
///
/// The number of slots is read when the first one is returned. A caller that has a fence before
/// that misses no thread whose own fence came earlier.
pub fn thread_stops() -> impl Iterator<Item = &'static AtomicU64> {
    let used = core::iter::once_with(|| USED_SLOTS.load(Relaxed));
    used.flat_map(|used| SLOTS.iter().take(used)).map(|slot| &slot.stop)
}

/// Adds to a counter that only this thread writes, so no read-modify-write is needed. Readers may
/// see an older sum.
#[inline(always)]
fn add(counter: &AtomicU64, number: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(number), Relaxed);
}

/// Counts an allocated block of this many usable bytes.
#[inline]
pub fn allocated(bytes: usize) {
    match ThreadSlot::current() {
        Some(slot) => slot.count_allocated(bytes),
        None => count_slowly(bytes, |slot| (&slot.allocated_bytes, &slot.allocations)),
    }
}

/// Counts a block of this many usable bytes that is about to be freed.
#[inline]
pub fn freed(bytes: usize) {
    match ThreadSlot::current() {
        Some(slot) => slot.count_freed(bytes),
        None => count_slowly(bytes, |slot| (&slot.freed_bytes, &slot.frees)),
    }
}

/// Counts blocks from before the hooks were called: the tracker came into a running program.
pub fn count_earlier(bytes: u64, blocks: u64) {
    COMMON.allocated_bytes.fetch_add(bytes, Relaxed);
    COMMON.allocations.fetch_add(blocks, Relaxed);
}

/// Counts a block of a thread without a slot of its own, which takes one if it can.
#[cold]
#[inline(never)]
fn count_slowly(bytes: usize, of: impl Fn(&Slot) -> (&AtomicU64, &AtomicU64)) {
    let (sum, number) = of(take_slot().unwrap_or(&COMMON));
    sum.fetch_add(bytes as u64, Relaxed);
    number.fetch_add(1, Relaxed);
}

/// The number of slots. Further threads share one, at the price of an atomic addition. A slot that
/// no thread has taken needs no memory but addresses.
const SLOT_COUNT: usize = 1024;

static SLOTS: [Slot; SLOT_COUNT] = [const { Slot::new() }; SLOT_COUNT];

/// The number of slots, from the first on, that threads have ever taken.
static USED_SLOTS: AtomicUsize = AtomicUsize::new(0);

/// The slot of threads that own none: too many threads, or a thread at the end of its life.
static COMMON: Slot = Slot::new();

/// A slot in which nothing is counted: its stop is reached with every block.
static STOPPED: Slot = Slot::new();

/// The counters of one thread. Two cache lines, because processors fetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Slot {
    allocated_bytes: AtomicU64,
    allocations: AtomicU64,
    freed_bytes: AtomicU64,
    frees: AtomicU64,
    /// See [`ThreadSlot::stop`].
    stop: AtomicU64,
    /// See [`ThreadSlot::prepared`].
    prepared: PreparedWord,
    taken: AtomicBool,
    /// The kernel's number of the last owner, and the address of its thread descriptor in the C
    /// library, which lies at the outer end of its stack.
    thread: AtomicU64,
    descriptor: AtomicUsize,
}

impl Slot {
    const fn new() -> Self {
        Slot {
            allocated_bytes: AtomicU64::new(0),
            allocations: AtomicU64::new(0),
            freed_bytes: AtomicU64::new(0),
            frees: AtomicU64::new(0),
            stop: AtomicU64::new(0),
            prepared: PreparedWord::new(),
            taken: AtomicBool::new(false),
            thread: AtomicU64::new(0),
            descriptor: AtomicUsize::new(0),
        }
    }
}

crate::__hook_local! {
    /// The slot that only this thread writes.
    static OWN: Cell<Option<&'static Slot>> = Cell::new(None), "memreport_hook_slot"
}

#[cfg(not(memreport_preload))]
std::thread_local! {
    /// The same slot, or [`STOPPED`]. Unlike an option it needs no test of its own. A pointer,
    /// since Rust 1.84 refuses a constant reference to what changes.
    static OWN_OR_STOPPED: Cell<*const Slot> = const { Cell::new(&raw const STOPPED) };
}

/// Returns the slot of this thread, or [`STOPPED`].
#[inline(always)]
fn own_or_stopped() -> &'static Slot {
    #[cfg(not(memreport_preload))]
    {
        let slot = OWN_OR_STOPPED.try_with(Cell::get).unwrap_or(&raw const STOPPED);
        // SAFETY: it is `STOPPED`, or a slot that `set_own` was given for the rest of the process.
        unsafe { &*slot }
    }
    // A value that begins with an address is no `__hook_local!`.
    #[cfg(memreport_preload)]
    OWN.try_with(Cell::get).ok().flatten().unwrap_or(&STOPPED)
}

/// Sets the slot of this thread.
fn set_own(slot: Option<&'static Slot>) {
    // A thread that ends has no slot any more.
    let _ = OWN.try_with(|own| own.set(slot));
    #[cfg(not(memreport_preload))]
    let _ = OWN_OR_STOPPED.try_with(|own| own.set(slot.unwrap_or(&STOPPED)));
}

crate::__hook_local! {
    /// True if this thread has tried to take a slot. It tries once.
    static HAS_TRIED: Cell<bool> = Cell::new(false), "memreport_hook_has_tried"
}

#[cold]
fn take_slot() -> Option<&'static Slot> {
    if HAS_TRIED.try_with(|has_tried| has_tried.replace(true)).unwrap_or(true) {
        return None;
    }
    let (index, slot) = SLOTS.iter().enumerate().find(|(_, slot)| {
        // Acquire, with the Release of `release_slot`: the former owner's sums are visible.
        !slot.taken.load(Relaxed)
            && slot.taken.compare_exchange(false, true, Acquire, Relaxed).is_ok()
    })?;
    // Release, with the Acquire of `Reading::take`, and before anything is counted in the slot.
    USED_SLOTS.fetch_max(index + 1, Release);
    if !THREAD_END.set(NonZeroUsize::MIN.saturating_add(index)) {
        slot.taken.store(false, Release);
        return None;
    }
    slot.stop.store(0, Relaxed);
    slot.prepared.plan.store(0, Relaxed);
    set_own(Some(slot));
    let (thread, descriptor) = current_thread();
    slot.descriptor.store(descriptor, Relaxed);
    // Release, with the Acquire of `descriptor_of`: the address is that of this thread.
    slot.thread.store(thread, Release);
    Some(slot)
}

/// Returns the address of a thread's descriptor in the C library, if that thread has allocated and
/// is alive.
pub(crate) fn descriptor_of(thread: u64) -> Option<usize> {
    let is_of = |slot: &&Slot| {
        // Acquire, with the Release of `take_slot`.
        slot.thread.load(Acquire) == thread && slot.taken.load(Relaxed)
    };
    let descriptor = SLOTS.iter().find(is_of)?.descriptor.load(Relaxed);
    (descriptor != 0).then_some(descriptor)
}

/// Releases the slots of threads that end.
static THREAD_END: ThreadEnd = ThreadEnd::new(release_slot);

/// Releases the slot of this thread. `number` is the slot's index plus one.
extern "C" fn release_slot(number: *mut c_void) {
    set_own(None);
    if let Some(slot) = SLOTS.get(number.addr().wrapping_sub(1)) {
        // Release, with the Acquire of `take_slot`.
        slot.taken.store(false, Release);
    }
}

/// Returns the kernel's number of this thread and the address of its descriptor.
#[cfg(all(target_os = "linux", not(miri)))]
fn current_thread() -> (u64, usize) {
    // SAFETY: a call without arguments.
    let number = unsafe { libc::syscall(libc::SYS_gettid) };
    // SAFETY: as above. The C libraries of Linux answer with the descriptor's address.
    let descriptor = unsafe { libc::pthread_self() };
    (u64::try_from(number).unwrap_or(0), address_of_thread(descriptor))
}

/// Returns the address that a thread's descriptor is, a number to glibc.
#[cfg(all(target_os = "linux", not(target_env = "musl"), not(miri)))]
fn address_of_thread(descriptor: libc::pthread_t) -> usize {
    usize::try_from(descriptor).unwrap_or(0)
}

/// Returns the address of a thread's descriptor, a pointer to musl.
#[cfg(all(target_os = "linux", target_env = "musl", not(miri)))]
fn address_of_thread(descriptor: libc::pthread_t) -> usize {
    descriptor.addr()
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn current_thread() -> (u64, usize) {
    (0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_are_replaced_while_counters_are_read_do_not_count_twice() {
        let reading = |allocated_bytes, freed_meanwhile| {
            let sum = HeapCounters { allocated_bytes, ..HeapCounters::default() };
            Reading { sum, freed_meanwhile }
        };
        // The first reading is interrupted for as long as threads replace 5 MB.
        let mut readings = [reading(105, 5_000_000), reading(100, 4000), reading(0, 0)].into_iter();
        let found = settled(|| readings.next().expect("no more readings than needed"));
        assert_eq!(found.allocated_bytes, 100);
        let mut amounts = [9, 5, 7, 6, 0].map(|part| part * 1_000_000).into_iter();
        let found = settled(|| {
            let meanwhile = amounts.next().expect("one");
            reading(meanwhile, meanwhile)
        });
        assert_eq!(found.allocated_bytes, 5_000_000, "the best of four");
    }
}
