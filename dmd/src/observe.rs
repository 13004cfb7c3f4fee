//! Single allocations, observed while the program runs.
//!
//! [`allocation_site`] finds where a value was allocated, and an [`Observer`] keeps a log of
//! allocations. An observer can see every allocation or a sample, also while DMD is asleep
//! otherwise. Tracking returns to its previous state when the observer is dropped.
//!
//! ```
//! dmd::global_allocator!();
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut observer = dmd::observe::Observer::start()?;
//! let words = vec![String::from("heap")];
//!
//! let allocation = dmd::allocation_site(&words[0])?;
//! assert_eq!(allocation.requested(), size_of::<String>());
//! assert!(allocation.stack().frames().count() > 0);
//!
//! let log = observer.drain_allocations_log()?;
//! assert!(!log.overflowed);
//! let sizes: Vec<_> = log.entries.iter().map(|entry| entry.requested()).collect();
//! assert!(sizes.contains(&4) && sizes.contains(&size_of::<String>()));
//! # Ok(())
//! # }
//! ```

mod allocation;
mod allocation_site;
mod log;
mod observer;
mod part;

#[cfg(feature = "explain")]
pub(crate) use allocation::Clock;
#[cfg(feature = "census")]
pub(crate) use allocation::scope_names;
pub use allocation::{Allocation, Stack};
pub use allocation_site::{AllocationSiteError, allocation_site, allocation_site_of};
pub use log::{AllocationsLog, LogError};
pub use observer::{DEFAULT_LOG_LENGTH, MAX_LOG_LENGTH, ObserveError, Observer, Sampling};
pub use part::Part;
