//! The dark matter detector: which heap blocks no memory reporter covers, and which are reported twice or wrongly.
#![cfg_attr(loom, expect(dead_code, reason = "under loom only what threads share is built"))]

mod mem;
mod sample;
mod table;
#[cfg(not(loom))]
mod stack;
mod event;
#[cfg(not(loom))]
mod hook;
#[cfg(not(loom))]
mod collect;
#[cfg(not(loom))]
pub mod observe;
#[cfg(not(loom))]
pub mod dump;
#[cfg(not(loom))]
mod control;
#[cfg(not(loom))]
pub mod testing;
#[cfg(all(feature = "census", not(loom)))]
pub mod census;
#[cfg(all(feature = "pprof", not(loom)))]
pub mod pprof;

#[cfg(all(feature = "census", not(loom)))]
pub use census::take_census;
#[cfg(not(loom))]
pub use collect::{Dump, Sum, Summary};
#[cfg(not(loom))]
pub use control::{record, run, saves};
#[cfg(not(loom))]
pub use hook::{Dmd, StartError, start, stop};
#[cfg(not(loom))]
pub use observe::{allocation_site, allocation_site_of};
#[cfg(not(loom))]
pub use sample::{DEFAULT_SAMPLE_BYTES, Mode, Options, OptionsError, Stacks};

/// Not public: for what the macros write.
#[cfg(not(loom))]
#[doc(hidden)]
pub mod __private {
    pub use memreport;

    pub use crate::__at_start as at_start;
    pub use crate::collect::Tracking;
    pub use crate::control::at_start as at_start_function;
    pub use crate::stack::{stack, unwinder_name};
}
