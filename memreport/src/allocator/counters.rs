//! Exact sums of what the allocator handed out and took back, a slot for each thread so that none waits for another.
#![expect(unsafe_code, reason = "a slot is given back by a destructor of the C library's threads")]

use core::cell::Cell;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// What the allocator has done since the program began. All sizes are usable bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapCounters {
    /// Bytes handed out. A reallocation counts as a free and an allocation.
    pub allocated_bytes: u64,
    /// Blocks handed out.
    pub allocations: u64,
    /// Bytes taken back.
    pub freed_bytes: u64,
    /// Blocks taken back.
    pub frees: u64,
}

impl HeapCounters {
    /// Bytes in live blocks.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        self.allocated_bytes.saturating_sub(self.freed_bytes)
    }

    /// Live blocks.
    #[must_use]
    pub fn live_blocks(&self) -> u64 {
        self.allocations.saturating_sub(self.frees)
    }
}

pub(crate) fn totals() -> HeapCounters {
    let mut sum = HeapCounters::default();
    // Frees first: a block that comes and goes between the two reads must not look freed but never allocated.
    for slot in SLOTS.iter().chain([&COMMON]) {
        sum.freed_bytes += slot.freed_bytes.load(Relaxed);
        sum.frees += slot.frees.load(Relaxed);
    }
    for slot in SLOTS.iter().chain([&COMMON]) {
        sum.allocated_bytes += slot.allocated_bytes.load(Relaxed);
        sum.allocations += slot.allocations.load(Relaxed);
    }
    sum
}

/// A block of this many usable bytes was handed out.
#[inline]
pub fn allocated(bytes: usize) {
    count(bytes, |slot| (&slot.allocated_bytes, &slot.allocations));
}

/// A block of this many usable bytes is about to be taken back.
#[inline]
pub fn freed(bytes: usize) {
    count(bytes, |slot| (&slot.freed_bytes, &slot.frees));
}

#[inline]
fn count(bytes: usize, of: impl Fn(&Slot) -> (&AtomicU64, &AtomicU64)) {
    match OWN.try_with(Cell::get) {
        Ok(Some(slot)) => {
            // Only this thread writes here: no read-modify-write is needed, and readers may be a moment late.
            let (sum, number) = of(slot);
            sum.store(sum.load(Relaxed).wrapping_add(bytes as u64), Relaxed);
            number.store(number.load(Relaxed).wrapping_add(1), Relaxed);
        }
        _ => count_slowly(of(take_slot().unwrap_or(&COMMON)), bytes),
    }
}

#[cold]
fn count_slowly((sum, number): (&AtomicU64, &AtomicU64), bytes: usize) {
    sum.fetch_add(bytes as u64, Relaxed);
    number.fetch_add(1, Relaxed);
}

/// More threads than slots share one, at the price of an atomic addition.
const SLOT_COUNT: usize = 256;

static SLOTS: [Slot; SLOT_COUNT] = [const { Slot::new() }; SLOT_COUNT];

/// For threads that own no slot: too many of them, or at the end of their lives.
static COMMON: Slot = Slot::new();

/// Two cache lines, since processors fetch lines in pairs.
#[repr(align(128))]
struct Slot {
    allocated_bytes: AtomicU64,
    allocations: AtomicU64,
    freed_bytes: AtomicU64,
    frees: AtomicU64,
    taken: AtomicBool,
    /// Of the last owner: the kernel's number, and the address of what the C library keeps of it, which lies at the outer
    /// end of its stack.
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
            taken: AtomicBool::new(false),
            thread: AtomicU64::new(0),
            descriptor: AtomicUsize::new(0),
        }
    }
}

std::thread_local! {
    /// The slot that only this thread writes.
    static OWN: Cell<Option<&'static Slot>> = const { Cell::new(None) };
    /// Whether this thread has asked for one; it asks once.
    static ASKED: Cell<bool> = const { Cell::new(false) };
}

#[cold]
fn take_slot() -> Option<&'static Slot> {
    if ASKED.try_with(|asked| asked.replace(true)).unwrap_or(true) {
        return None;
    }
    let key = exit::key()?;
    let (index, slot) = SLOTS.iter().enumerate().find(|(_, slot)| {
        // Acquire, with the Release of `give_back`: the sums that the former owner wrote are seen.
        !slot.taken.load(Relaxed)
            && slot.taken.compare_exchange(false, true, Acquire, Relaxed).is_ok()
    })?;
    if !exit::at_thread_end(key, index) {
        slot.taken.store(false, Release);
        return None;
    }
    OWN.try_with(|own| own.set(Some(slot))).ok()?;
    let (thread, descriptor) = exit::current_thread();
    slot.descriptor.store(descriptor, Relaxed);
    // Release, with the Acquire of `descriptor_of`: the address is that of this thread.
    slot.thread.store(thread, Release);
    Some(slot)
}

/// Where the C library keeps what it knows of a thread, if that thread has allocated and lives.
pub(crate) fn descriptor_of(thread: u64) -> Option<usize> {
    let is_of = |slot: &&Slot| {
        // Acquire, with the Release of `take_slot`.
        slot.thread.load(Acquire) == thread && slot.taken.load(Relaxed)
    };
    let descriptor = SLOTS.iter().find(is_of)?.descriptor.load(Relaxed);
    (descriptor != 0).then_some(descriptor)
}

fn give_back(index: usize) {
    let _ = OWN.try_with(|own| own.set(None));
    if let Some(slot) = SLOTS.get(index) {
        // Release, with the Acquire of `take_slot`.
        slot.taken.store(false, Release);
    }
}

/// Thread ends, without a destructor of Rust's: registering one may allocate.
#[cfg(all(unix, not(miri)))]
mod exit {
    use core::ffi::c_void;
    use core::sync::atomic::AtomicU64;
    use core::sync::atomic::Ordering::{AcqRel, Acquire};

    /// 0 is none yet; otherwise the key plus one.
    static KEY: AtomicU64 = AtomicU64::new(0);

    /// The kernel's number of this thread, and where its descriptor is.
    #[cfg(target_os = "linux")]
    pub(crate) fn current_thread() -> (u64, usize) {
        // SAFETY: a call without arguments.
        let number = unsafe { libc::syscall(libc::SYS_gettid) };
        // SAFETY: as above. The C libraries of Linux answer with the descriptor's address.
        let descriptor = unsafe { libc::pthread_self() };
        (u64::try_from(number).unwrap_or(0), usize::try_from(descriptor).unwrap_or(0))
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn current_thread() -> (u64, usize) {
        (0, 0)
    }

    pub(crate) fn key() -> Option<libc::pthread_key_t> {
        let known = KEY.load(Acquire);
        if known != 0 {
            return libc::pthread_key_t::try_from(known - 1).ok();
        }
        let mut key: libc::pthread_key_t = 0;
        // SAFETY: a plain call; `key` is written before it returns 0.
        if unsafe { libc::pthread_key_create(&raw mut key, Some(ended)) } != 0 {
            return None;
        }
        match KEY.compare_exchange(0, u64::from(key) + 1, AcqRel, Acquire) {
            Ok(_) => Some(key),
            Err(first) => {
                // SAFETY: made above, and no thread has used it.
                unsafe { libc::pthread_key_delete(key) };
                libc::pthread_key_t::try_from(first - 1).ok()
            }
        }
    }

    /// A thread's value is its slot's index plus one, since null means none.
    pub(crate) fn at_thread_end(key: libc::pthread_key_t, index: usize) -> bool {
        // SAFETY: a live key; the value is only ever a number.
        unsafe { libc::pthread_setspecific(key, core::ptr::without_provenance(index + 1)) == 0 }
    }

    extern "C" fn ended(value: *mut c_void) {
        super::give_back(value.addr().wrapping_sub(1));
    }
}

#[cfg(not(all(unix, not(miri))))]
mod exit {
    pub(crate) fn current_thread() -> (u64, usize) {
        (0, 0)
    }

    pub(crate) fn key() -> Option<()> {
        None
    }

    pub(crate) fn at_thread_end((): (), _index: usize) -> bool {
        false
    }
}
