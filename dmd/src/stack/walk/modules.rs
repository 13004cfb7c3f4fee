//! The module of a code address and its unwind information, found without a lock.
#![expect(unsafe_code, reason = "reads modules where they are loaded")]

use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};

use super::unwind_info::UnwindInfo;
use crate::mem::sys::{self, UnwindModule};

/// A module's unwind information and identity.
pub(crate) struct ModuleInfo {
    pub(crate) unwind_info: UnwindInfo<'static>,
    /// The identity of the module, to check cached rules of it.
    pub(crate) identity: Identity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The module stays loaded until the process ends.
    Permanent,
    /// The module may be unloaded. This hash distinguishes it from any other at its address.
    Fingerprint(u64),
    /// The module may be unloaded, and has no build id to distinguish it.
    Unknown,
}

/// A module that stays loaded: its address range, the segment with its unwind information, and the
/// address of `.eh_frame_hdr` in that segment.
struct PermanentModule {
    low: AtomicUsize,
    high: AtomicUsize,
    start: AtomicUsize,
    end: AtomicUsize,
    index: AtomicUsize,
}

/// The modules that stay loaded until the process ends, of those that were loaded when it began.
/// Hooks read them.
static PERMANENT: [PermanentModule; 256] = [const {
    PermanentModule {
        low: AtomicUsize::new(0),
        high: AtomicUsize::new(0),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        index: AtomicUsize::new(0),
    }
}; 256];
static PERMANENT_COUNT: AtomicUsize = AtomicUsize::new(0);

/// The address range of the module that contains the tracker.
static OWN_LOW: AtomicUsize = AtomicUsize::new(0);
static OWN_HIGH: AtomicUsize = AtomicUsize::new(0);

/// True once modules were stored.
static IS_RECORDED: AtomicBool = AtomicBool::new(false);

/// The moment at which modules are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Before `main` of a program that the tracker is preloaded into.
    Preloaded,
    /// In the initialiser of the tracker's own module: before `main`, if that is the program.
    Initialiser,
    /// While the program runs.
    Running,
}

/// Stores the modules that stay loaded until the process ends. Only the first call does so: modules
/// that are loaded later may be unloaded. It may take the linker's lock: never call it from a hook.
pub(crate) fn record_loaded(moment: Moment) {
    if IS_RECORDED.swap(true, Relaxed) {
        return;
    }
    let (mut all_stay, mut is_program) = (moment == Moment::Preloaded, true);
    sys::each_unwind_module(&mut |module| {
        let holds = |address: usize| (module.low..module.high).contains(&address);
        let is_own = holds(record_loaded as *const () as usize);
        // True if the tracker is part of the program, and not of a library that was loaded later.
        all_stay |= moment == Moment::Initialiser && is_program && is_own;
        if is_own {
            OWN_LOW.store(module.low, Relaxed);
            OWN_HIGH.store(module.high, Relaxed);
        }
        // Nobody unloads the tracker: its code is in the allocator.
        let is_c_library = holds(libc::getpid as *const () as usize);
        let stays = all_stay || is_program || is_own || is_c_library;
        if stays && module.index != 0 {
            publish(module);
        }
        is_program = false;
    });
}

/// Stores the modules that stay loaded until the process ends. Call it before `main`, also if
/// nothing is tracked yet: modules that the program loads itself may be unloaded.
pub(crate) fn note_loaded(is_preloaded: bool) {
    // Elsewhere modules have no unwind information, and reading what they have takes long.
    if sys::HAS_UNWIND_INFO {
        record_loaded(if is_preloaded { Moment::Preloaded } else { Moment::Initialiser });
    }
}

fn publish(module: UnwindModule) {
    let count = PERMANENT_COUNT.load(Relaxed);
    let Some(place) = PERMANENT.get(count) else { return };
    place.low.store(module.low, Relaxed);
    place.high.store(module.high, Relaxed);
    place.start.store(module.start, Relaxed);
    place.end.store(module.end, Relaxed);
    place.index.store(module.index, Relaxed);
    // Release, with the Acquire of `find`: the entry is written before it is counted.
    PERMANENT_COUNT.store(count + 1, Release);
}

/// # Safety
///
/// The module stays loaded for as long as the result is used.
unsafe fn unwind_info(module: UnwindModule) -> UnwindInfo<'static> {
    let (start, length) = (ptr::with_exposed_provenance(module.start), module.end - module.start);
    // SAFETY: by this function's contract the segment is loaded. It is readable, and never written.
    let bytes = unsafe { std::slice::from_raw_parts(start, length) };
    UnwindInfo { start: module.start, bytes, index: module.index }
}

/// A range of addresses. `high` is exclusive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressRange {
    pub(crate) low: usize,
    pub(crate) high: usize,
}

/// Returns the address range of the module that contains the tracker; empty before it is stored.
#[inline(always)]
pub(crate) fn own_range() -> AddressRange {
    // Relaxed: written once, and published by the choice of an unwinder.
    AddressRange { low: OWN_LOW.load(Relaxed), high: OWN_HIGH.load(Relaxed) }
}

/// Returns the module of this code. The code is on this thread's stack, so it is not unloaded
/// meanwhile.
pub(crate) fn find(code: usize) -> Option<ModuleInfo> {
    // Acquire, with the Release of `publish`. The loads below are Relaxed for that reason.
    let count = PERMANENT_COUNT.load(Acquire).min(PERMANENT.len());
    let permanent = PERMANENT
        .iter()
        .take(count)
        .find(|place| place.low.load(Relaxed) <= code && code < place.high.load(Relaxed));
    if let Some(place) = permanent {
        let module = UnwindModule {
            low: place.low.load(Relaxed),
            high: place.high.load(Relaxed),
            start: place.start.load(Relaxed),
            end: place.end.load(Relaxed),
            index: place.index.load(Relaxed),
        };
        // SAFETY: a permanent module is never unloaded.
        let unwind_info = unsafe { unwind_info(module) };
        return Some(ModuleInfo { unwind_info, identity: Identity::Permanent });
    }
    find_unloadable(code)
}

/// Returns the fingerprint of the module of this code.
pub(crate) fn fingerprint(code: usize) -> Option<u64> {
    sys::fingerprint(code)
}

fn find_unloadable(code: usize) -> Option<ModuleInfo> {
    let found = sys::find_module(code)?;
    // SAFETY: the module's code is on this thread's stack, so it is not unloaded meanwhile.
    let unwind_info = unsafe { unwind_info(found.module) };
    let identity = found.fingerprint.map_or(Identity::Unknown, Identity::Fingerprint);
    Some(ModuleInfo { unwind_info, identity })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_loaded_with_the_program_are_permanent() {
        record_loaded(Moment::Initialiser);
        let own = own_range();
        assert!((own.low..own.high).contains(&(record_loaded as *const () as usize)));
        assert!(find(0x1000).is_none());
        if !sys::HAS_UNWIND_INFO {
            // Not run: what is found there is no unwind information.
            return;
        }
        for function in [record_loaded as *const (), libc::getpid as *const ()] {
            let found = find(function.addr()).expect("it is loaded");
            assert_eq!(found.identity, Identity::Permanent);
            let UnwindInfo { start, bytes, index } = found.unwind_info;
            assert!(start <= index && index < start + bytes.len());
        }
        // The end of a module is outside.
        let index = |code| find(code).map(|found| found.unwind_info.index);
        assert!(index(own.low).is_some());
        assert_ne!(index(own.high), index(own.low));
    }

    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn a_module_that_was_loaded_later_is_not_permanent() {
        record_loaded(Moment::Initialiser);
        // SAFETY: a library of the C library's, whose initialisers do nothing that matters here.
        let library = unsafe { libc::dlopen(c"libresolv.so.2".as_ptr(), libc::RTLD_NOW) };
        assert!(!library.is_null(), "glibc has this library");
        // SAFETY: a handle of a library.
        let code = unsafe { libc::dlsym(library, c"__b64_ntop".as_ptr()) };
        assert!(!code.is_null(), "the library has this function");
        // As each start of tracking does, and an initialiser that runs once more.
        record_loaded(Moment::Running);
        record_loaded(Moment::Initialiser);
        if let Some(found) = find(code.addr()) {
            assert_ne!(found.identity, Identity::Permanent);
        }
        let own_function = record_loaded as *const ();
        let found = find(own_function.addr()).expect("it is loaded");
        assert_eq!(found.identity, Identity::Permanent);
    }

    #[test]
    fn a_module_that_may_be_unloaded_is_known_by_its_build_id() {
        record_loaded(Moment::Initialiser);
        let code = (libc::getpid as *const ()).addr();
        let Some(known) = fingerprint(code) else {
            // Not run: an older C library, or a system without such a look-up.
            return;
        };
        let unloadable = find_unloadable(code).expect("it is loaded");
        assert_eq!(unloadable.identity, Identity::Fingerprint(known));
        let permanent = find(code).expect("it is loaded");
        let place = |info: UnwindInfo<'static>| (info.start, info.bytes.len(), info.index);
        assert_eq!(place(unloadable.unwind_info), place(permanent.unwind_info));
    }
}
