//! Starts and stops tracking: once at the first block, by `$DMD`, and later on request.

use std::fmt;

use super::{own_frames, preloaded};
use crate::event::observers;
use crate::mem::single_instance;
use crate::sample::options::{Options, Stacks};
use crate::sample::plan;
use crate::sample::rate::TooManyRates;
use crate::sample::variable;
use crate::stack::walk;

/// The program that an allocator was declared for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A program or plugin of its own.
    Program,
    /// A test, which needs the table of blocks: the allocator is awake even without `$DMD`.
    Test,
    /// Any program: the tracker is preloaded into it.
    Preloaded,
}

/// Decides what the hooks do, by `$DMD`.
///
/// Runs in the first hook, so it neither allocates nor does I/O. Threads that call it at the same
/// time make the same decision.
#[cold]
pub(crate) fn decide(place: Place) {
    let options = chosen(place, preloaded::is_wanted, variable::options().as_ref());
    // Another copy of the tracker may be active. The first sampling rate always has a number.
    let decided = options
        .filter(|_| single_instance::is_first())
        .and_then(|options| plan::begin(options).ok());
    if decided.is_none() {
        plan::set_asleep();
    }
}

/// Returns the options from the first block on, by `$DMD`; `None` to begin asleep.
fn chosen<E>(
    place: Place,
    is_wanted: impl FnOnce() -> bool,
    variable: Option<&Result<Options, E>>,
) -> Option<Options> {
    match variable {
        _ if place == Place::Preloaded && !is_wanted() => None,
        Some(Ok(options)) => Some(*options),
        // `at_start` prints the error.
        Some(Err(_)) => None,
        None if place == Place::Test && !cfg!(miri) => {
            Some(Options::default().stacks(Stacks::None))
        }
        None => None,
    }
}

/// Starts tracking while the program runs.
///
/// Blocks that were allocated before are untracked: reports of them are not checked, and dumps do
/// not list them. If tracking is on already, it continues with the new options, and blocks that are
/// in the table stay there.
///
/// # Errors
///
/// If the program's allocator is not DMD's, if another copy of DMD tracks the process (such as a
/// plugin's), or if the process has used 31 sampling rates already.
///
/// ```
/// dmd::global_allocator!();
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// dmd::start("--mode=profile --sample-bytes=64K".parse()?)?;
/// // … the work to profile …
/// dmd::stop();
/// # Ok(())
/// # }
/// ```
pub fn start(options: Options) -> Result<(), StartError> {
    check_ready()?;
    if options.effective_stacks() != Stacks::None {
        walk::choose(options.unwinder);
    }
    observers::change_plan(|| plan::begin(options))?;
    own_frames::learn();
    Ok(())
}

/// Makes sure that stacks can be taken, also while nothing is tracked.
pub(crate) fn prepare_stacks() -> Result<(), StartError> {
    check_ready()?;
    walk::choose(None);
    Ok(())
}

/// Checks that DMD's allocator is declared, and that this copy of the tracker is the active one.
fn check_ready() -> Result<(), StartError> {
    if memreport::__private::tracker().is_none() {
        return Err(StartError::NotDeclared);
    }
    if single_instance::is_first() { Ok(()) } else { Err(StartError::OtherCopy) }
}

/// Stops tracking: new blocks are not inserted into the table.
///
/// Blocks that are in the table stay there until they are freed, and tracking can start again at
/// any time.
pub fn stop() {
    // Needs no new sampling rate. On an error the rate of the profile stays in effect.
    let _ = observers::change_plan(|| {
        plan::stop_inserting();
        Ok(())
    });
}

/// Tracking did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// The program's allocator is not DMD's.
    NotDeclared,
    /// Another copy of the tracker tracks this process, such as a plugin's.
    OtherCopy,
    /// The process has used 31 different sampling rates, which is the limit.
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
                "31 sample sizes and probabilities were used in this process, which is the limit: choose one of them"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preloaded_tracker_begins_where_it_is_wanted_and_a_test_always() {
        let options = Options::default;
        let without_stacks = options().stacks(Stacks::None);
        for (place, is_wanted, variable, expected) in [
            (Place::Program, false, None, None),
            (Place::Program, false, Some(Ok(options())), Some(options())),
            (Place::Program, false, Some(Err(())), None),
            (Place::Test, false, None, Some(without_stacks)),
            (Place::Test, false, Some(Ok(options())), Some(options())),
            (Place::Preloaded, true, Some(Ok(options())), Some(options())),
            (Place::Preloaded, true, None, None),
            (Place::Preloaded, false, Some(Ok(options())), None),
        ] {
            let found = chosen(place, || is_wanted, variable.as_ref());
            assert_eq!(found, expected, "{place:?} {is_wanted} {variable:?}");
        }
    }
}
