//! The function before `main`: rejects an invalid `$DMD`, and starts what the environment requests.

use std::ffi::{c_char, c_int};

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use memreport::__private::{as_own, thread_counters};

use super::{late_server, record, run, saves};
use crate::hook::start::start;
use crate::hook::{own_frames, preloaded};
use crate::mem::{signals, single_instance, sys};
use crate::sample::plan;
use crate::sample::variable;
use crate::stack::{own_code, thread, walk};

/// The variable by which the dynamic linker loads libraries into a program at its start.
const LD_PRELOAD: &str = "LD_PRELOAD";

static STARTED: AtomicBool = AtomicBool::new(false);

/// Runs before `main`, on the main thread, outside any hook.
pub extern "C" fn at_start(_count: c_int, arguments: *const *const c_char) {
    if STARTED.swap(true, Relaxed) {
        return;
    }
    begin(arguments, true);
}

/// Runs before `main` in a program that the tracker is preloaded into. The program's signals stay
/// as they are.
pub extern "C" fn at_start_preloaded(_count: c_int, arguments: *const *const c_char) {
    if STARTED.swap(true, Relaxed) || !preloaded::is_wanted() {
        return;
    }
    if !is_called() {
        // In a running program it is called later: `attach`. The arguments are above all frames of
        // the main thread.
        sys::note_main_stack(sys::above_main_frames(arguments.addr()));
        // Without a request, nobody expects to be tracked.
        if sys::variable(LD_PRELOAD).is_none() {
            return;
        }
        if variable::options().is_some() || is_requested() {
            report_other_malloc();
        }
        return;
    }
    own_code::learn_module();
    // Threads and sockets of the tracker have blocks of the C library's.
    as_own(|| {
        begin(arguments, false);
        if single_instance::is_first() {
            single_instance::note_malloc();
            start_late();
            late_server::start();
        }
    });
}

/// Returns whether the process calls this library's functions. Addresses do not tell: those of
/// functions may be in the program's own file, and lead on.
fn is_called() -> bool {
    // The thread's counters begin with its first block, this one.
    drop(std::hint::black_box(Box::new(0_u8)));
    let before = thread_counters();
    sys::allocate_in_c_library();
    before.is_none() || before != thread_counters()
}

/// Returns whether the environment requests files.
fn is_requested() -> bool {
    [run::VARIABLE, record::VARIABLE, saves::VARIABLE]
        .iter()
        .any(|name| sys::variable(name).is_some())
}

/// Starts tracking, if the first block came before the C library had the environment.
fn start_late() {
    if let Some(Ok(options)) = variable::options()
        && !plan::plan().is_awake()
    {
        // Another copy of the tracker tracks the process.
        let _ = start(options);
    }
}

fn begin(arguments: *const *const c_char, catches_signals: bool) {
    if let Some(Err(bad)) = variable::options() {
        exit_with(&bad.to_string());
    }
    // The first block decides the plan. Allocate it now, so that an inactive copy is reported
    // early.
    drop(std::hint::black_box(Box::new(0_u8)));
    if single_instance::is_later() {
        return report_inactive_copy();
    }
    // The arguments are above all frames of the main thread. Tracking may need this later.
    sys::note_main_stack(sys::above_main_frames(arguments.addr()));
    sys::note_descriptor();
    walk::note_loaded(own_code::is_whole_module());
    signals::at_fork(thread::renumber_in_child);
    if plan::plan().is_awake() || variable::options().is_some() {
        walk::choose(variable::options().and_then(Result::ok).and_then(|options| options.unwinder));
        own_frames::learn();
    }
    sys::keep_marks();
    record::start_from_variable();
    saves::start_from_variable();
    run::connect(catches_signals);
}

/// Ends the program because of an invalid option, instead of running it untracked.
#[expect(clippy::print_stderr, clippy::exit, reason = "the program has not begun")]
fn exit_with(message: &str) -> ! {
    eprintln!("DMD[{}] {message}", std::process::id());
    std::process::exit(1);
}

/// Prints that the program does not call the preloaded functions. Symbols of a program come before
/// those of preloaded libraries.
#[expect(clippy::print_stderr, reason = "the user must learn that nothing is tracked")]
fn report_other_malloc() {
    let pid = std::process::id();
    let path = sys::module_path_of(c"malloc").unwrap_or_else(|| "another file".into());
    eprintln!(
        "DMD[{pid}] tracks nothing: the program calls the malloc of {path}, not the preloaded one."
    );
}

/// Prints that this copy of the tracker is inactive. Two active copies would each track a part of
/// the heap, and overwrite each other's dumps.
#[expect(clippy::print_stderr, reason = "the user must learn which blocks are not tracked")]
fn report_inactive_copy() {
    if single_instance::must_report() {
        eprintln!(
            "DMD[{}] is in this process more than once. The first copy tracks; the one in {} sleeps, and its blocks are in no \
             dump.",
            std::process::id(),
            sys::own_module_path().as_deref().unwrap_or("another file")
        );
    }
}

/// Has [`at_start`] run before `main`.
#[doc(hidden)]
#[macro_export]
macro_rules! __at_start {
    () => {
        const _: () = {
            $crate::__before_main! {
                static AT_START: extern "C" fn(
                    ::core::ffi::c_int,
                    *const *const ::core::ffi::c_char,
                ) = $crate::__private::at_start_function;
            }
        };
    };
}
