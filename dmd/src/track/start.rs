//! The tracker wakes up, or does not: `$DMD` is read once, before anything is tracked.
#![expect(unsafe_code, reason = "reads the environment before Rust may, and runs before main")]

use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::options::{Options, Stacks};
use super::plan::{self, Plan};
use super::rates::TooManyRates;
use super::{copies, observers, sys, walk};

/// Decides what the hooks do from now on. Called from the first hook, so it neither allocates nor does I/O; threads that
/// come here at once decide alike.
#[cold]
pub(crate) fn decide(wakes_in_tests: bool) -> Plan {
    let wish = match variable() {
        Some(Ok(options)) => Some(options),
        // Said at start-up, where one may print.
        Some(Err(_)) => None,
        None if wakes_in_tests && !cfg!(miri) => Some(Options::default().stacks(Stacks::None)),
        None => None,
    };
    // Another copy of the tracker may have the process already. The first rate of all has a place.
    let decided = wish.filter(|_| copies::is_first()).and_then(|options| plan::begin(options).ok());
    decided.unwrap_or_else(|| {
        plan::sleep();
        Plan::ASLEEP
    })
}

/// Starts tracking while the program runs. Blocks that were made before are known as just that: their reports are taken at
/// the allocator's word, and no dump lists them.
///
/// Tracking that has started already goes on with the new options; what was tracked under others stays in the table.
///
/// # Errors
///
/// When the program's allocator is not DMD's, so that there is nothing to track; when another copy of DMD tracks the
/// process, as that of a plugin may; and when more than 31 samples of
/// different sizes or probabilities are asked for in one process.
///
/// ```
/// dmd::global_allocator!();
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// dmd::start("--mode=profile --sample-bytes=64K".parse()?)?;
/// // … the work that is to be understood …
/// dmd::stop();
/// # Ok(())
/// # }
/// ```
pub fn start(options: Options) -> Result<(), StartError> {
    find_ready()?;
    if options.which_stacks() != Stacks::None {
        walk::choose(options.unwinder);
    }
    plan::begin(options).and_then(|_| observers::refresh())?;
    Ok(())
}

/// Makes sure that stacks can be taken, whatever is tracked.
pub(crate) fn prepare() -> Result<(), StartError> {
    find_ready()?;
    walk::choose(None);
    Ok(())
}

/// Whether this copy of the tracker has the process.
fn find_ready() -> Result<(), StartError> {
    if memreport::__private::tracker().is_none() {
        return Err(StartError::NotDeclared);
    }
    if copies::is_first() { Ok(()) } else { Err(StartError::OtherCopy) }
}

/// Stops tracking: blocks made from now on are not entered. Those in the table stay there until they are given back, so that
/// tracking can start again at any time.
pub fn stop() {
    plan::stop_entering();
    // Their draws alone need no rate that there was no place for: at worst the profile's goes on.
    let _ = observers::refresh();
}

/// Why tracking did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// The program's allocator is not DMD's.
    NotDeclared,
    /// Another copy of the tracker, as in a plugin of its own, tracks this process.
    OtherCopy,
    /// A block's entry tells 31 sample sizes and probabilities apart, and all were used.
    TooManyRates,
}

impl fmt::Display for StartError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            StartError::NotDeclared => {
                "nothing to track: the program's allocator is not DMD's; put `dmd::global_allocator!();` into its main.rs"
            }
            StartError::OtherCopy => {
                "another copy of DMD tracks this process already: build the plugin and the program with the same one"
            }
            StartError::TooManyRates => {
                "31 sample sizes and probabilities were used in this process, and no more can be told apart: choose one of them"
            }
        })
    }
}

impl std::error::Error for StartError {}

impl From<TooManyRates> for StartError {
    fn from(_: TooManyRates) -> Self {
        StartError::TooManyRates
    }
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
        refuse(&bad.to_string());
    }
    // The first block decides: it is made now, so that a copy that sleeps says so before it is used.
    drop(std::hint::black_box(Box::new(0_u8)));
    if copies::is_later() {
        return say_that_it_sleeps();
    }
    // The arguments lie above all frames of the main thread. Known even if tracking starts later, or never.
    sys::note_main_stack(arguments.addr());
    if plan::plan().is_awake() || variable().is_some() {
        walk::choose(variable().and_then(Result::ok).and_then(|options| options.unwinder));
    }
    crate::run::keep_mark();
    crate::record::begin_if_asked();
    crate::saves::begin_if_asked();
    crate::run::connect();
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
    if copies::is_to_say() {
        eprintln!(
            "DMD[{}] is in this process more than once. The first copy tracks; the one in {} sleeps, and its blocks are in no \
             dump.",
            std::process::id(),
            sys::own_file().as_deref().unwrap_or("another file")
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
