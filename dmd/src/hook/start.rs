//! The tracker wakes up, or does not: `$DMD` is read once, before anything is tracked.

use std::fmt;

use crate::event::observers;
use crate::mem::single_instance;
use crate::sample::options::{Options, Stacks};
use crate::sample::plan::{self, Plan};
use crate::sample::rate::TooManyRates;
use crate::sample::variable;
use crate::stack::walk;

/// Decides what the hooks do from now on. Called from the first hook, so it neither allocates nor does I/O; threads that
/// come here at once decide alike.
#[cold]
pub(crate) fn decide(wakes_in_tests: bool) -> Plan {
    let wish = match variable::options() {
        Some(Ok(options)) => Some(options),
        // Said at start-up, where one may print.
        Some(Err(_)) => None,
        None if wakes_in_tests && !cfg!(miri) => Some(Options::default().stacks(Stacks::None)),
        None => None,
    };
    // Another copy of the tracker may have the process already. The first rate of all has a place.
    let decided =
        wish.filter(|_| single_instance::is_first()).and_then(|options| plan::begin(options).ok());
    decided.unwrap_or_else(|| {
        plan::set_asleep();
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
    if options.effective_stacks() != Stacks::None {
        walk::choose(options.unwinder);
    }
    plan::begin(options).and_then(|_| observers::refresh_hooks())?;
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
    if single_instance::is_first() { Ok(()) } else { Err(StartError::OtherCopy) }
}

/// Stops tracking: blocks made from now on are not entered. Those in the table stay there until they are given back, so that
/// tracking can start again at any time.
pub fn stop() {
    plan::stop_inserting();
    // Their draws alone need no rate that there was no place for: at worst the profile's goes on.
    let _ = observers::refresh_hooks();
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
