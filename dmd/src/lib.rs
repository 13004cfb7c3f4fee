//! The dark matter detector: which heap blocks no memory reporter covers, and which are reported twice or wrongly.

mod track;
#[cfg(not(loom))]
pub mod run;
#[cfg(not(loom))]
pub mod sites;
#[cfg(not(loom))]
mod live;
#[cfg(not(loom))]
pub mod saves;
#[cfg(not(loom))]
pub mod record;
#[cfg(not(loom))]
pub mod dump;
#[cfg(not(loom))]
pub mod testing;
#[cfg(all(feature = "pprof", not(loom)))]
pub mod pprof;
#[cfg(test)]
pub(crate) mod sample_unbiased;
#[cfg(all(feature = "census", not(loom)))]
pub mod census;

#[cfg(all(feature = "census", not(loom)))]
pub use census::take_census;
#[cfg(not(loom))]
pub use dump::{Dump, Sum, Summary};
#[cfg(not(loom))]
pub use sites::{allocation_site, allocation_site_of};
#[cfg(not(loom))]
pub use track::hooks::Dmd;
#[cfg(not(loom))]
pub use track::options::{DEFAULT_SAMPLE_BYTES, Mode, Options, OptionsError, Stacks};
#[cfg(not(loom))]
pub use track::start::{StartError, start, stop};

/// Not public: for what the macros write.
#[cfg(not(loom))]
#[doc(hidden)]
pub mod __private {
    pub use memreport;

    pub use crate::__at_start as at_start;
    pub use crate::track::collection::Tracking;
    pub use crate::track::start::at_start as at_start_function;
    pub use crate::track::walk::{stack, unwinder_name};
}
