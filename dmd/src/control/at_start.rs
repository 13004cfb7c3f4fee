//! What runs before `main`: bad words in `$DMD` are refused, and whatever the environment asks for begins.
use std::ffi::{c_char, c_int};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::{record, run, saves};
use crate::mem::{single_instance, sys};
use crate::sample::plan;
use crate::sample::variable;
use crate::stack::walk;

static STARTED: AtomicBool = AtomicBool::new(false);

/// Runs before `main`, on the main thread, outside any hook.
pub extern "C" fn at_start(_count: c_int, arguments: *const *const c_char) {
    if STARTED.swap(true, Relaxed) {
        return;
    }
    if let Some(Err(bad)) = variable::options() {
        refuse(&bad.to_string());
    }
    // The first block decides: it is made now, so that a copy that sleeps says so before it is used.
    drop(std::hint::black_box(Box::new(0_u8)));
    if single_instance::is_later() {
        return say_that_it_sleeps();
    }
    // The arguments lie above all frames of the main thread. Known even if tracking starts later, or never.
    sys::note_main_stack(arguments.addr());
    if plan::plan().is_awake() || variable::options().is_some() {
        walk::choose(variable::options().and_then(Result::ok).and_then(|options| options.unwinder));
    }
    run::keep_mark();
    record::begin_if_asked();
    saves::begin_if_asked();
    run::connect();
}

/// A word that nobody understands stops the program: it would otherwise run for hours without being tracked.
#[expect(
    clippy::print_stderr,
    clippy::exit,
    reason = "the program has not begun, and is not going to"
)]
fn refuse(message: &str) -> ! {
    eprintln!("DMD[{}] {message}", std::process::id());
    std::process::exit(1);
}

/// Two that track would each know a part of the heap, and dump it over the other's.
#[expect(clippy::print_stderr, reason = "whoever asked for DMD must know what it leaves out")]
fn say_that_it_sleeps() {
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
            #[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
            #[used]
            static AT_START: extern "C" fn(::core::ffi::c_int, *const *const ::core::ffi::c_char) =
                $crate::__private::at_start_function;
        };
    };
}
