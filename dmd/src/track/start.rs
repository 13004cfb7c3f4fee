//! The tracker wakes up, or does not: `$DMD` is read once, before anything is tracked.
#![expect(unsafe_code, reason = "reads the environment before Rust may, and runs before main")]

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::hooks::{State, set_state, state};
use super::options::{Options, Stacks};
use super::{sys, walk};

/// Decides what the hooks do from now on. Called from the first hook, so it neither allocates nor does I/O; threads that
/// come here at once decide alike.
#[cold]
pub(crate) fn decide(wakes_in_tests: bool) -> State {
    let decided = match variable() {
        Some(Ok(options)) if options.stacks == Stacks::Full => State::Stacks,
        Some(Ok(_)) => State::Table,
        // Said at start-up, where one may print.
        Some(Err(_)) => State::Asleep,
        None if wakes_in_tests && !cfg!(miri) => State::Table,
        None => State::Asleep,
    };
    set_state(decided);
    decided
}

/// The value of `$DMD`, if it is set, as text.
pub(crate) fn variable_text() -> Option<&'static str> {
    // SAFETY: a string constant; the answer points into the environment. A program that changes `$DMD` while its first
    // block is allocated is beyond help.
    let value = unsafe { libc::getenv(c"DMD".as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: `getenv` gives a string that ends.
    let value = unsafe { CStr::from_ptr(value) };
    // What is not text is a bad word too.
    Some(value.to_str().unwrap_or("\u{fffd}"))
}

/// The wishes in `$DMD`. Empty is as if it were not set.
pub(crate) fn variable() -> Option<Result<Options, super::options::BadWord<'static>>> {
    let text = variable_text()?;
    if text.trim().is_empty() { None } else { Some(Options::parse(text)) }
}

static STARTED: AtomicBool = AtomicBool::new(false);

/// Runs before `main`, on the main thread, outside any hook.
pub extern "C" fn at_start(_count: c_int, arguments: *const *const c_char) {
    if STARTED.swap(true, Relaxed) {
        return;
    }
    if let Some(Err(bad)) = variable() {
        stop(&bad.to_string());
    }
    if matches!(state(), State::Table | State::Stacks) || variable().is_some() {
        // The arguments lie above all frames of the main thread.
        sys::note_main_stack(arguments.addr());
        walk::choose(variable().and_then(Result::ok).and_then(|options| options.unwinder));
    }
    crate::run::keep_mark();
    crate::run::connect();
}

/// A word that nobody understands stops the program: it would otherwise run for hours without being tracked.
#[expect(
    clippy::print_stderr,
    clippy::exit,
    reason = "the program has not begun, and is not going to"
)]
fn stop(message: &str) -> ! {
    eprintln!("DMD[{}] {message}", std::process::id());
    std::process::exit(1);
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
