//! The dark matter detector: which heap blocks no memory reporter covers, and which are reported twice or wrongly.

mod track;
pub mod run;
pub mod dump;
pub mod testing;
#[cfg(feature = "analysis")]
pub mod symbols;
#[cfg(feature = "analysis")]
pub mod analysis;

pub use dump::{Dump, Sum, Summary};
pub use track::hooks::Dmd;

/// Not public: for what the macros write.
#[doc(hidden)]
pub mod __private {
    pub use memreport;

    pub use crate::__at_start as at_start;
    pub use crate::track::collection::Tracking;
    pub use crate::track::start::at_start as at_start_function;
    pub use crate::track::walk::{stack, unwinder_name};
}
