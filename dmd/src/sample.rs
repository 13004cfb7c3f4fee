//! The decision for each block: options, the plan of the hooks, sampling rates and draws.

#[cfg(not(loom))]
pub(crate) mod options;
#[cfg(not(loom))]
pub(crate) mod unwinder;
#[cfg(not(loom))]
pub(crate) mod variable;
pub(crate) mod rate;
pub(crate) mod sampler;
#[cfg(not(loom))]
pub(crate) mod plan;
#[cfg(all(test, not(loom)))]
mod unbiased;

#[cfg(not(loom))]
pub use options::{DEFAULT_SAMPLE_BYTES, Mode, Options, OptionsError, Stacks};
