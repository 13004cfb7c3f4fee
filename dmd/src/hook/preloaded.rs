//! Decides whether a preloaded tracker tracks this process, or passes C's blocks to the tracker of
//! the program.
#![expect(unsafe_code, reason = "refers to the hooks of another copy of this code")]

use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU8};

use memreport::__private::is_privileged;

use super::c_heap::{CHeapBelow, CHeapHooks};
use crate::mem::sys;

/// The environment variable with a process number: a preloaded tracker tracks only the children of
/// that process, and not theirs. Programs keep their number when they become another (`exec`).
pub const VARIABLE: &str = "MEMREPORT_CHILD_OF";

/// The result, or 0 before it is known.
static IS_WANTED: AtomicU8 = AtomicU8::new(0);

const YES: u8 = 1;
const NO: u8 = 2;

/// Returns whether the process is tracked: the environment selects it, the program does not declare
/// DMD itself, and it has no more privileges than its starter. Hooks may call it.
pub(crate) fn is_wanted() -> bool {
    // Relaxed: a single word, which all threads compute alike.
    match IS_WANTED.load(Relaxed) {
        YES => true,
        NO => false,
        _ => {
            let is_wanted = !is_privileged() && is_selected() && !program_has_tracker();
            IS_WANTED.store(if is_wanted { YES } else { NO }, Relaxed);
            is_wanted
        }
    }
}

/// Returns whether the program declares DMD itself. Hooks may call it.
pub(crate) fn program_has_tracker() -> bool {
    sys::program_note(NOTE_NAME, sys::TRACKER_NOTE).is_some()
}

/// The hooks of the program; null before they are looked for, and [`NONE`] if there are none.
static PROGRAM: AtomicPtr<CHeapHooks> = AtomicPtr::new(ptr::null_mut());

const NONE: *mut CHeapHooks = ptr::without_provenance_mut(align_of::<CHeapHooks>());

/// Returns the hooks of the program's own tracker for the functions of C, which are connected to
/// `below` at first. Returns `None` if it has none, or the environment does not select the process.
#[inline(always)]
pub fn program_hooks(below: &'static CHeapBelow) -> Option<&'static CHeapHooks> {
    // Acquire, with the Release of `find_program`.
    let hooks = PROGRAM.load(Acquire);
    if hooks == NONE {
        return None;
    }
    if hooks.is_null() {
        return find_program(below);
    }
    // SAFETY: a static of the program.
    Some(unsafe { &*hooks })
}

/// Looks for the hooks, before the program's first block: the first call is from the dynamic linker
/// or an initialiser, on the only thread.
#[cold]
#[inline(never)]
fn find_program(below: &'static CHeapBelow) -> Option<&'static CHeapHooks> {
    let is_selected = !is_privileged() && is_selected();
    let hooks = if is_selected { hooks_by_note() } else { None };
    if let Some(hooks) = hooks {
        hooks.connect(below);
    }
    let found = hooks.map_or(NONE, |hooks| ptr::from_ref(hooks).cast_mut());
    PROGRAM.store(found, Release);
    hooks
}

fn hooks_by_note() -> Option<&'static CHeapHooks> {
    let content = sys::program_note(NOTE_NAME, C_HEAP_HOOKS)?;
    let distance = isize::from_ne_bytes(content.try_into().ok()?);
    let address = content.as_ptr().addr().wrapping_add_signed(distance);
    let hooks = ptr::with_exposed_provenance::<CHeapHooks>(address);
    // SAFETY: the note is the one of `__declare_c_heap!`, which leads to a static of this type: its
    // first field is the version in every version.
    let hooks = unsafe { &*hooks };
    hooks.has_this_version().then_some(hooks)
}

/// Returns whether the environment selects this process.
fn is_selected() -> bool {
    let parent = sys::variable_in_hook(c"MEMREPORT_CHILD_OF");
    let parent = parent.and_then(|text| text.to_str().ok()?.parse::<u32>().ok());
    parent.is_none_or(|parent| parent == std::os::unix::process::parent_id())
}

/// The name of the note in programs that declare DMD. It ends in zeros to a multiple of four.
pub(crate) const NOTE_NAME: [u8; 12] = *b"memreport\0\0\0";

/// The kind of the note that leads to the hooks for the functions of C.
const C_HEAP_HOOKS: u32 = 2;
