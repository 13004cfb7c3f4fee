//! The dark matter detector (DMD): a tracking allocator that finds heap memory without a reporter.
//!
//! Reporters of the crate [`memreport`] report which part of a program owns how much memory. This
//! crate checks them against every live block of the heap. It finds blocks that no reporter reports
//! (*dark matter*), blocks that are reported twice, and reports that match no block, each with the
//! call stack of its allocation.
//!
//! # A whole program
//!
//! ```
//! use std::sync::Mutex;
//!
//! // Declares the system's allocator, tracked by DMD.
//! dmd::global_allocator!();
//!
//! static PAGES: Mutex<Vec<String>> = Mutex::new(Vec::new());
//! static INDEX: Mutex<Vec<u32>> = Mutex::new(Vec::new()); // without a reporter
//!
//! memreport::reporter!("explicit/pages", PAGES, "The text of all pages.");
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     dmd::start("1".parse()?)?; // or run the program with `DMD=1`
//!     PAGES.lock().unwrap().push("a page".repeat(1000));
//!     INDEX.lock().unwrap().extend(0..10_000);
//!
//!     let snapshot = memreport::snapshot();
//!     let summary = dmd::Dump::of(&snapshot).ok_or("DMD is asleep")?.summary();
//!     assert!(summary.once.bytes >= 6000); // the page
//!     assert!(summary.unreported.bytes >= 40_000); // the index: dark matter
//!
//!     // Saves the report, and the dump beside it as `memory-report.dmd.json.gz`.
//!     Ok(snapshot.save(std::env::temp_dir().join("memory-report.json.gz"))?)
//! }
//! ```
//!
//! # Steps
//!
//! 1. Declare the allocator once, in `main.rs` and in the first file of each test binary:
//!    [`global_allocator!`].
//! 2. Register reporters for the structures that own much: `memreport::reporter!`.
//! 3. Start the program with `DMD=1`, or call [`start`]. Until then it is asleep.
//! 4. Take a snapshot. `about-memory run -- ./program` does that at exit, and prints the biggest
//!    unreported places with function, line and type. `about-memory` also reads saved dumps.
//!
//! # Costs
//!
//! The ratios are run times compared with the same allocator alone, as measured: from a server
//! under load to a benchmark that only replaces blocks. The repository's `docs/design/costs.md`
//! has each with its spread.
//!
//! | `$DMD` | tracks | ratio |
//! |---|---|---|
//! | unset | counts of blocks and bytes | 1.0 to 1.13 |
//! | `1`, `--mode=dark-matter` | all live blocks, with stacks and reports | 1.0 to 2.5 |
//! | `--mode=live` | all live blocks, with stacks | 1.0 to 2.5 |
//! | `--mode=cumulative` | also counts of freed blocks | slightly more |
//! | `--mode=scan` | also the address and contents of each block | as `live` |
//! | `--mode=profile` | an unbiased sample, one byte in 512 KiB | 1.0 to 1.16 |
//!
//! The table of blocks takes about a quarter of the heap's bytes with glibc and half with jemalloc,
//! and a stack takes 100 to 200 nanoseconds. `--stacks=none` reduces the ratio to 1.4 or less.
//! Tracking is for Linux; on macOS it compiles, and nobody has run it.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `census` | `census`: counts the running program's heap by type, thread, size, site or scope |
//! | `pprof` | `pprof`: serves heap profiles to `go tool pprof` and continuous profilers |
//! | `cpp` | names of C++ functions as the source has them, in the paths of blocks of C |
//! | `explain` | types and suggestions in the messages of [`testing::Baseline`] |
//! | `jemalloc`, `mimalloc`, `snmalloc` | the inner allocators of the crates of these names |
//!
//! # Next
//!
//! * [`testing`]: asserts that types and programs report all their memory, and budgets.
//! * [`observe`]: the place where a value was allocated, and a log of current allocations.
//! * [`record`]: allocations over time. [`saves`]: reports at intervals.
//! * [`Options`]: all words of `$DMD`.
//! * `examples/` of this package; the guide in the repository's `docs/guide`; `about-memory run`.

#![cfg_attr(loom, expect(dead_code, reason = "under loom only what threads share is built"))]

mod mem;
mod sample;
mod table;
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
#[cfg(all(any(feature = "census", feature = "pprof"), not(loom)))]
mod inspect;

#[cfg(not(loom))]
pub use collect::{Dump, Sum, Summary};
#[cfg(not(loom))]
pub use control::{record, run, saves};
#[cfg(not(loom))]
pub use hook::{Dmd, StartError, start, stop};
#[cfg(all(feature = "census", not(loom)))]
pub use inspect::census::{self, take_census};
#[cfg(all(feature = "pprof", not(loom)))]
pub use inspect::pprof;
#[cfg(not(loom))]
pub use observe::{allocation_site, allocation_site_of};
#[cfg(not(loom))]
pub use sample::{DEFAULT_SAMPLE_BYTES, Mode, Options, OptionsError, Stacks};

/// Not public: for code that the macros generate.
#[cfg(not(loom))]
#[doc(hidden)]
pub mod __private {
    pub use memreport;

    pub use crate::__at_start as at_start;
    pub use crate::collect::Tracking;
    pub use crate::control::{AttachError, Earlier, attach, before_sudden_exit, spawn_own};
    pub use crate::control::{at_start as at_start_function, at_start_preloaded};
    pub use crate::hook::c_heap::{CHeapBelow, CHeapHooks, ZeroSizedMalloc};
    pub use crate::hook::preloaded::{VARIABLE as CHILD_OF_VARIABLE, program_hooks};
    pub use crate::mem::sys::keeping_errno;
    pub use crate::stack::{stack, stack_hash, unwinder_name};
}
