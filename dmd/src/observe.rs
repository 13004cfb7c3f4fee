//! Single allocations, observed while the program runs: where a value was allocated, and a log of what is allocated now.
//!
//! An [`Observer`] turns it on, and off when it is dropped; DMD may sleep. It may see every allocation, or a sample of them.
//!
//! ```
//! dmd::global_allocator!();
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut observer = dmd::sites::Observer::start()?;
//! let words = vec![String::from("heap")];
//!
//! let site = dmd::allocation_site(&words[0])?;
//! assert_eq!(site.requested(), size_of::<String>());
//! assert!(site.stack().frames().count() > 0);
//!
//! let log = observer.drain_allocations_log()?;
//! assert!(!log.overflowed);
//! let sizes: Vec<_> = log.entries.iter().map(|packed| packed.requested()).collect();
//! assert!(sizes.contains(&4) && sizes.contains(&size_of::<String>()));
//! # Ok(())
//! # }
//! ```

mod allocation;
mod find;
mod observer;

pub use allocation::{Allocation, Stack};
pub use find::{NoSite, allocation_site, allocation_site_of};
pub use observer::{
    AllocationsLog, DEFAULT_LOG_LENGTH, LogError, MAX_LOG_LENGTH, ObserveError, Observer, Sampling,
};
