//! The decision for each block: whether it is tracked, and whether it gets a stack.
//!
//! Read `options` (the user's choice), `plan` (what hooks do, as bits), then `rate` and `sampler`
//! (geometric sampling), and `stops` (which blocks a sampler sees). `variable` parses `$DMD`.
//! `unwinder` names the ways to walk a stack. `models` checks under loom that threads see what
//! belongs to a plan and to a rate.
//!
//! Invariants:
//! * Hooks read the plan as one word, and test its bits; no mode has a mechanism of its own.
//! * A block keeps its sampling rate, so its weight is exact even after the rate changes.

#[cfg(not(loom))]
pub(crate) mod options;
#[cfg(not(loom))]
pub(crate) mod unwinder;
#[cfg(not(loom))]
pub(crate) mod variable;
pub(crate) mod rate;
#[cfg(not(loom))]
pub(crate) mod sampler;
#[cfg(not(loom))]
pub(crate) mod plan;
pub(crate) mod stops;
#[cfg(all(test, not(loom)))]
mod unbiased;
#[cfg(all(test, loom))]
mod models;

#[cfg(not(loom))]
pub use options::{DEFAULT_SAMPLE_BYTES, Mode, Options, OptionsError, Stacks};
