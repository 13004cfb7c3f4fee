//! The functions of `include/memreport.h`, for code in C inside a Rust program.
#![expect(unsafe_code, reason = "functions of C take raw pointers")]

use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_void};
use std::alloc::{Layout, System};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::registry;
use super::reporter::{Reporter, Reports, amount};
use crate::allocator::UsableSize;
use crate::allocator::declaration::tracker;
use crate::event::{scope, scope_table};
use crate::measure::ops::{Ops, measure_with};
use crate::report::{Kind, Report, Units};

type Collect = unsafe extern "C" fn(*mut Reports<'_>, *mut c_void);
type Visit = unsafe extern "C" fn(*const Blocks<'_, '_>, *mut c_void);

/// A pointer that the program passes back to its own functions.
#[derive(Clone, Copy)]
struct Data(*mut c_void);

// SAFETY: only the program's functions use it, which the header allows any thread to call.
unsafe impl Send for Data {}

/// A reporter in C. It is empty once it is unregistered, and locked while it runs.
struct InC(Mutex<Option<(Collect, Data)>>);

impl InC {
    fn lock(&self) -> MutexGuard<'_, Option<(Collect, Data)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reporter for InC {
    fn collect(&self, reports: &mut Reports<'_>) {
        let reporter = self.lock();
        if let Some((collect, data)) = *reporter {
            // SAFETY: a function of this type with its own data, by the contract of the header.
            unsafe { collect(reports, data.0) };
        }
    }
}

/// The registered reporters by number.
static REPORTERS: Mutex<BTreeMap<u64, Arc<InC>>> = Mutex::new(BTreeMap::new());

fn reporters() -> MutexGuard<'static, BTreeMap<u64, Arc<InC>>> {
    REPORTERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The blocks of one report.
enum Blocks<'o, 'a> {
    /// Each one is claimed.
    Claimed(&'o Ops<'a>),
    /// The bytes are added up.
    Summed(Cell<usize>),
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
    let reporter = Arc::new(InC(Mutex::new(Some((collect, Data(data))))));
    let as_reporter: Arc<dyn Reporter> = Arc::clone(&reporter) as _;
    // From 1: 0 is no reporter.
    let number = registry::add(as_reporter, "a reporter in C") + 1;
    reporters().insert(number, reporter);
    number
}

/// See `memreport.h`.
#[no_mangle]
extern "C" fn memreport_unregister(reporter: u64) {
    let Some(found) = reporters().remove(&reporter) else { return };
    registry::unregister(reporter - 1);
    // Waits for a call that runs.
    *found.lock() = None;
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
    reports: *mut Reports<'_>,
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
    // SAFETY: as above: valid during the call of the reporter, which is the only one that has it.
    let Some(reports) = (unsafe { reports.as_mut() }) else { return };
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
}

/// See `memreport.h`.
///
/// # Safety
///
/// `reports` is what a reporter was called with, the texts are C strings, and `visit` may be called
/// with `data`.
#[no_mangle]
unsafe extern "C" fn memreport_measure(
    reports: *mut Reports<'_>,
    path: *const c_char,
    visit: Option<Visit>,
    data: *mut c_void,
    description: *const c_char,
) -> usize {
    // SAFETY: the caller's contract.
    let path = unsafe { text(path) };
    // SAFETY: as above.
    let description = unsafe { text(description) };
    // SAFETY: as in `memreport_amount`.
    let Some(reports) = (unsafe { reports.as_mut() }) else { return 0 };
    let Some(visit) = visit else { return 0 };
    // SAFETY: the caller's contract; the blocks are valid during the call.
    let visit = |blocks: &Blocks<'_, '_>| unsafe { visit(blocks, data) };
    let (kind, bytes) = blocks_of(reports, &path, visit);
    reports.add_measured(Report::new(path, kind, Units::Bytes, amount(bytes), description.into()));
    bytes
}

/// Measures the blocks that `visit` passes. Returns the kind of their report, and their bytes.
fn blocks_of(reports: &Reports<'_>, path: &str, visit: impl Fn(&Blocks<'_, '_>)) -> (Kind, usize) {
    let c_heap = tracker().filter(|tracker| tracker.tracks_c_heap());
    if c_heap.is_some_and(|tracker| tracker.is_awake()) {
        reports.collection.set_claimant(reports.paths.number(path));
        let measured =
            measure_with(reports.collection, &(), |(), ops| visit(&Blocks::Claimed(ops)));
        return (Kind::Heap, measured.bytes);
    }
    let blocks = Blocks::Summed(Cell::new(0));
    visit(&blocks);
    let bytes = if let Blocks::Summed(bytes) = blocks { bytes.get() } else { 0 };
    (if c_heap.is_some() { Kind::Heap } else { Kind::NonHeap }, bytes)
}

/// See `memreport.h`.
///
/// # Safety
///
/// `blocks` is what `visit` was called with, and `block` is null or a live block of malloc.
#[no_mangle]
unsafe extern "C" fn memreport_block(blocks: *const Blocks<'_, '_>, block: *const c_void) {
    // SAFETY: the caller's contract.
    let Some(blocks) = (unsafe { blocks.as_ref() }) else { return };
    if block.is_null() {
        return;
    }
    match blocks {
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
