//! Decides whether a preloaded tracker tracks this process.

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;

use memreport::__private::is_privileged;

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
            let is_wanted = !is_privileged() && is_selected() && !sys::program_has_note(NOTE_NAME);
            IS_WANTED.store(if is_wanted { YES } else { NO }, Relaxed);
            is_wanted
        }
    }
}

/// Returns whether the environment selects this process.
fn is_selected() -> bool {
    let parent = sys::variable_in_hook(c"MEMREPORT_CHILD_OF");
    let parent = parent.and_then(|text| text.to_str().ok()?.parse::<u32>().ok());
    parent.is_none_or(|parent| parent == std::os::unix::process::parent_id())
}

/// The name of the note in programs that declare DMD. It ends in zeros to a multiple of four.
pub(crate) const NOTE_NAME: [u8; 12] = *b"memreport\0\0\0";
