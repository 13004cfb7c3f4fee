//! The functions of `include/memreport.h`, for code in C inside a Rust program.
#![expect(unsafe_code, reason = "functions of C take raw pointers")]

use core::cell::{Cell, RefCell};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicUsize};
use std::alloc::{Layout, System};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::call_lock::CallLock;
use super::registry;
use super::reporter::{Reporter, Reports, amount, count};
use crate::allocator::UsableSize;
use crate::allocator::declaration::tracker;
use crate::event::{scope, scope_table};
use crate::measure::ops::{Ops, measure_with};
use crate::report::{Kind, Report, Units};

type Collect = unsafe extern "C" fn(*const ReportsOfCall<'_, '_>, *mut c_void);
type Visit = unsafe extern "C" fn(*const BlocksOfCall<'_, '_>, *mut c_void);

/// A pointer that the program passes back to its own functions.
#[derive(Clone, Copy)]
struct Data(*mut c_void);

// SAFETY: only the program's functions use it, which the header allows any thread to call.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}

/// The name of all reporters in C in notes.
const NAME: &str = "a reporter in C";

/// A reporter in C, locked while it runs.
struct InC {
    collect: Collect,
    data: Data,
    is_registered: AtomicBool,
    lock: CallLock,
}

impl InC {
    fn new(collect: Collect, data: Data) -> Self {
        InC { collect, data, is_registered: AtomicBool::new(true), lock: CallLock::default() }
    }
}

impl Reporter for InC {
    fn collect(&self, reports: &mut Reports<'_>) {
        let _locked = self.lock.lock();
        // Relaxed, here and where it is written: it is read and written with the lock alone.
        if !self.is_registered.load(Relaxed) {
            return;
        }
        let caller = Caller::default();
        let call = ReportsOfCall { caller: &caller, reports: RefCell::new(reports) };
        // SAFETY: a function of this type with its own data, by the contract of the header.
        unsafe { (self.collect)(&raw const call, self.data.0) };
        let reports = call.reports.into_inner();
        let refused = caller.refused.load(Relaxed);
        if refused > 0 {
            reports.missed(NAME);
            let calls = count(refused, "call was", "calls were");
            reports
                .note(format!("{NAME}: {calls} refused, made on another thread or within a visit"));
        }
    }
}

/// The thread that calls a function of the program, and the calls that it may not make.
struct Caller {
    /// The address of a thread-local value.
    thread: usize,
    refused: AtomicUsize,
}

std::thread_local! {
    static OF_THREAD: u8 = const { 0 };
}

/// Returns a number that no other living thread has.
fn this_thread() -> usize {
    OF_THREAD.try_with(|value| core::ptr::from_ref(value).addr()).unwrap_or(0)
}

impl Default for Caller {
    fn default() -> Self {
        Caller { thread: this_thread(), refused: AtomicUsize::new(0) }
    }
}

impl Caller {
    /// Returns whether this is the caller's thread. Otherwise counts a refused call.
    fn is_here(&self) -> bool {
        let is_here = self.thread == this_thread();
        if !is_here {
            self.refuse();
        }
        is_here
    }

    fn refuse(&self) {
        // Relaxed: only a number.
        self.refused.fetch_add(1, Relaxed);
    }
}

/// The reports that a call of `memreport_collect` makes: the `memreport_reports` of the header.
///
/// On other threads than the caller's, nothing but `caller` is used.
struct ReportsOfCall<'r, 'c> {
    caller: &'r Caller,
    /// Borrowed during a visit, which makes no other reports.
    reports: RefCell<&'r mut Reports<'c>>,
}

impl<'c> ReportsOfCall<'_, 'c> {
    /// Uses the reports, unless the call is refused.
    ///
    /// # Safety
    ///
    /// `call` is null or what `memreport_collect` was called with, and that call runs.
    unsafe fn with<R>(call: *const Self, work: impl FnOnce(&mut Reports<'c>) -> R) -> Option<R> {
        // SAFETY: the caller's contract.
        let call = unsafe { call.as_ref() }?;
        if !call.caller.is_here() {
            return None;
        }
        if let Ok(mut reports) = call.reports.try_borrow_mut() {
            return Some(work(&mut reports));
        }
        call.caller.refuse();
        None
    }
}

/// The blocks of one report: the `memreport_blocks` of the header.
///
/// On other threads than the caller's, nothing but `caller` is used.
struct BlocksOfCall<'o, 'a> {
    caller: &'o Caller,
    blocks: Blocks<'o, 'a>,
}

/// The registered reporters by number.
static REPORTERS: Mutex<BTreeMap<u64, Arc<InC>>> = Mutex::new(BTreeMap::new());

fn reporters() -> MutexGuard<'static, BTreeMap<u64, Arc<InC>>> {
    REPORTERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The way in which the blocks of a report are counted.
#[derive(Clone, Copy)]
enum Blocks<'o, 'a> {
    /// Each one is claimed.
    Claimed(&'o Ops<'a>),
    /// The bytes are added up.
    Summed(&'o Cell<usize>),
}

/// Returns a text of C's; invalid UTF-8 is replaced. Null is empty.
///
/// # Safety
///
/// `text` is null or a C string that lives during the call.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's contract.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// See `memreport.h`.
///
/// # Safety
///
/// `collect` may be called with `data` by any thread, until the reporter is unregistered.
#[no_mangle]
unsafe extern "C" fn memreport_register(collect: Option<Collect>, data: *mut c_void) -> u64 {
    let Some(collect) = collect else { return 0 };
    let reporter = Arc::new(InC::new(collect, Data(data)));
    let as_reporter: Arc<dyn Reporter> = Arc::clone(&reporter) as _;
    // From 1: 0 is no reporter.
    let number = registry::add(as_reporter, NAME) + 1;
    reporters().insert(number, reporter);
    number
}

/// See `memreport.h`.
#[no_mangle]
extern "C" fn memreport_unregister(reporter: u64) {
    let Some(found) = reporters().remove(&reporter) else { return };
    registry::unregister(reporter - 1);
    // Waits for a call that runs.
    let locked = found.lock.lock();
    found.is_registered.store(false, Relaxed);
    drop(locked);
}

fn kind_of(number: c_int) -> Option<Kind> {
    [Kind::NonHeap, Kind::Heap, Kind::Other].get(usize::try_from(number).ok()?).copied()
}

fn units_of(number: c_int) -> Option<Units> {
    let all = [Units::Bytes, Units::Count, Units::CountCumulative, Units::Percentage];
    all.get(usize::try_from(number).ok()?).copied()
}

/// See `memreport.h`.
///
/// # Safety
///
/// `reports` is what a reporter was called with, and the texts are C strings.
#[no_mangle]
unsafe extern "C" fn memreport_amount(
    reports: *const ReportsOfCall<'_, '_>,
    path: *const c_char,
    kind: c_int,
    units: c_int,
    amount: i64,
    description: *const c_char,
) {
    // SAFETY: the caller's contract.
    let path = unsafe { text(path) };
    // SAFETY: as above.
    let description = unsafe { text(description) };
    let add = |reports: &mut Reports<'_>| {
        let (Some(kind), Some(units)) = (kind_of(kind), units_of(units)) else {
            return reports.note(format!("{path}: refused, as its kind or its units do not exist"));
        };
        let is_bytes = units == Units::Bytes;
        if path.is_empty() || path.starts_with("explicit/") && (!is_bytes || kind == Kind::Other) {
            return reports
                .note(format!("{path}: refused, as explicit/ takes bytes, heap or non-heap"));
        }
        let kind = if is_bytes { kind } else { Kind::Other };
        reports.add(Report::new(path, kind, units, amount, description.into()));
    };
    // SAFETY: as above.
    unsafe { ReportsOfCall::with(reports, add) };
}

/// See `memreport.h`.
///
/// # Safety
///
/// `reports` is what a reporter was called with, and `path` is a C string.
#[no_mangle]
unsafe extern "C" fn memreport_missed(reports: *const ReportsOfCall<'_, '_>, path: *const c_char) {
    // SAFETY: the caller's contract.
    let path = unsafe { text(path) };
    // SAFETY: as above.
    unsafe { ReportsOfCall::with(reports, |reports| reports.missed(path)) };
}

/// See `memreport.h`.
///
/// # Safety
///
/// `reports` is what a reporter was called with.
#[no_mangle]
unsafe extern "C" fn memreport_anonymize(reports: *const ReportsOfCall<'_, '_>) -> c_int {
    // SAFETY: the caller's contract.
    let anonymize = unsafe { ReportsOfCall::with(reports, |reports| reports.anonymize()) };
    // A refused call gives no permission.
    c_int::from(anonymize.unwrap_or(true))
}

/// See `memreport.h`.
///
/// # Safety
///
/// `reports` is what a reporter was called with, the texts are C strings, and `visit` may be called
/// with `data`.
#[no_mangle]
unsafe extern "C" fn memreport_measure(
    reports: *const ReportsOfCall<'_, '_>,
    path: *const c_char,
    visit: Option<Visit>,
    data: *mut c_void,
    description: *const c_char,
) -> usize {
    // SAFETY: the caller's contract.
    let path = unsafe { text(path) };
    // SAFETY: as above.
    let description = unsafe { text(description) };
    let Some(visit) = visit else { return 0 };
    let measure = |reports: &mut Reports<'_>| {
        let caller = Caller::default();
        // SAFETY: the caller's contract; the blocks are valid during the call.
        let visit = |blocks: Blocks<'_, '_>| unsafe {
            visit(&BlocksOfCall { caller: &caller, blocks }, data);
        };
        let (kind, bytes) = blocks_of(reports, &path, visit);
        let refused = caller.refused.load(Relaxed);
        if refused > 0 {
            reports.missed(&*path);
            let blocks = count(refused, "block was", "blocks were");
            reports.note(format!("{path}: {blocks} refused, passed on another thread"));
        }
        let (bytes_reported, description) = (amount(bytes), description.into());
        reports.add_measured(Report::new(path, kind, Units::Bytes, bytes_reported, description));
        bytes
    };
    // SAFETY: as above.
    unsafe { ReportsOfCall::with(reports, measure) }.unwrap_or(0)
}

/// Measures the blocks that `visit` passes. Returns the kind of their report, and their bytes.
fn blocks_of(
    reports: &Reports<'_>,
    path: &str,
    visit: impl FnOnce(Blocks<'_, '_>),
) -> (Kind, usize) {
    let c_heap = tracker().filter(|tracker| tracker.tracks_c_heap());
    if c_heap.is_some_and(|tracker| tracker.is_awake()) {
        reports.collection.set_claimant(reports.paths.number(path));
        let measured = measure_with(reports.collection, &(), |(), ops| visit(Blocks::Claimed(ops)));
        return (Kind::Heap, measured.bytes);
    }
    let bytes = Cell::new(0);
    visit(Blocks::Summed(&bytes));
    (if c_heap.is_some() { Kind::Heap } else { Kind::NonHeap }, bytes.get())
}

/// See `memreport.h`.
///
/// # Safety
///
/// `call` is what `visit` was called with, and `block` is null or a live block of malloc.
#[no_mangle]
unsafe extern "C" fn memreport_block(call: *const BlocksOfCall<'_, '_>, block: *const c_void) {
    // SAFETY: the caller's contract.
    let Some(call) = (unsafe { call.as_ref() }) else { return };
    if block.is_null() || !call.caller.is_here() {
        return;
    }
    match call.blocks {
        // SAFETY: a live block, whose minimum size is not known.
        Blocks::Claimed(ops) => unsafe { ops.block_of_at_least(block.cast::<u8>(), 1) },
        Blocks::Summed(bytes) => {
            // SAFETY: a live block of malloc, which needs no layout.
            let size = unsafe { System.usable_size(block.cast(), Layout::new::<()>()) };
            bytes.set(bytes.get() + size);
        }
    }
}

/// See `memreport.h`.
///
/// # Safety
///
/// `name` is a C string.
#[no_mangle]
unsafe extern "C" fn memreport_enter_scope(name: *const c_char) -> u64 {
    // SAFETY: the caller's contract.
    let name = unsafe { text(name) };
    let entered = scope_table::number(scope::current_scope(), name.into());
    let before = scope::enter(entered);
    u64::from(entered) << 16 | u64::from(before)
}

/// See `memreport.h`.
#[no_mangle]
extern "C" fn memreport_leave_scope(scope: u64) {
    let [.., entered_high, entered_low, before_high, before_low] = scope.to_be_bytes();
    scope::leave(
        u16::from_be_bytes([entered_high, entered_low]),
        u16::from_be_bytes([before_high, before_low]),
    );
}

/// Keeps the functions in programs whose own Rust code does not call them.
#[used]
static KEPT: [unsafe extern "C" fn(Option<Collect>, *mut c_void) -> u64; 1] = [memreport_register];

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Misuses its blocks on another thread, and the reports in `data` within the visit.
    unsafe extern "C" fn visit(blocks: *const BlocksOfCall<'_, '_>, data: *mut c_void) {
        let call = Data(blocks.cast_mut().cast());
        let elsewhere = move || {
            let Data(call) = { call };
            // SAFETY: the call runs. The block is never read, as the call is refused.
            unsafe { memreport_block(call.cast(), NAME.as_ptr().cast()) };
        };
        thread::scope(|scope| _ = scope.spawn(elsewhere));
        // SAFETY: the call that these reports belong to runs.
        unsafe { memreport_missed(data.cast(), c"explicit/refused".as_ptr()) };
    }

    unsafe extern "C" fn collect(reports: *const ReportsOfCall<'_, '_>, _: *mut c_void) {
        let (data, path) = (reports.cast_mut().cast(), c"explicit/visited".as_ptr());
        // SAFETY: the reports of this call, and C strings.
        unsafe { memreport_measure(reports, path, Some(visit), data, c"".as_ptr()) };
        // SAFETY: as above.
        unsafe { memreport_missed(reports, c"explicit/locked".as_ptr()) };
    }

    #[test]
    fn calls_on_another_thread_or_within_a_visit_are_refused() {
        // SAFETY: the function takes any data.
        let reporter = unsafe { memreport_register(Some(collect), core::ptr::null_mut()) };
        let snapshot = crate::snapshot();
        memreport_unregister(reporter);
        let missed: Vec<_> = snapshot.missed().iter().map(|missed| &*missed.reporter).collect();
        for path in ["explicit/visited", "explicit/locked", NAME] {
            assert!(missed.contains(&path), "{path} is not in {missed:?}");
        }
        assert!(!missed.contains(&"explicit/refused"), "{missed:?}");
        let notes = snapshot.notes.join("\n");
        assert!(notes.contains("explicit/visited: 1 block was refused"), "{notes}");
        assert!(notes.contains("1 call was refused, made on another thread or within"), "{notes}");
    }
}
