//! Memory reporters for Rust programs: measure the heap that values own, report it by path, and
//! save a snapshot that `about-memory` and Firefox's about:memory open.
//!
//! A profiler shows where memory was allocated. A reporter shows which part of the program owns it
//! now, in the program's own words: `explicit/index/words`. The crate `dmd` then checks the reports
//! against every live block, and finds memory that no reporter covers.
//!
//! # A whole program
//!
//! ```
//! use std::collections::HashMap;
//! use std::sync::Mutex;
//!
//! use memreport::MallocSizeOf;
//!
//! // Declares the system's allocator, so that it reports block sizes and blocks are counted.
//! memreport::global_allocator!();
//!
//! #[derive(Default, MallocSizeOf)]
//! struct Index {
//!     words: HashMap<String, Vec<u32>>,
//!     /// Rendered pages, dropped when memory is short.
//!     #[malloc_size_of(part)]
//!     cache: Vec<String>,
//!     #[malloc_size_of(ignore = "static text")]
//!     title: Option<&'static str>,
//! }
//!
//! static INDEX: Mutex<Option<Index>> = Mutex::new(None);
//!
//! memreport::reporter!("explicit/index", INDEX, "The pages that contain each word.");
//!
//! fn main() -> std::io::Result<()> {
//!     let mut index = Index::default();
//!     index.words.insert("heap".to_owned(), vec![1, 2]);
//!     index.cache.push("a page".repeat(100));
//!
//!     let measured = memreport::measure(&index);
//!     assert!(measured.bytes > 600 && measured.part("cache") >= 600);
//!
//!     *INDEX.lock().unwrap() = Some(index);
//!     memreport::snapshot().save(std::env::temp_dir().join("memory-report.json.gz"))
//! }
//! ```
//!
//! # Steps
//!
//! 1. Derive [`MallocSizeOf`](macro@MallocSizeOf) for the types that own much. Types of other
//!    crates have a feature each, named after the crate; `all-crates` enables all.
//! 2. Declare the allocator once, in `main.rs`: [`global_allocator!`] or `dmd::global_allocator!`.
//!    Without it, sizes come from layouts, and slop is missing.
//! 3. Register a reporter for each static or service: [`reporter!`], [`register`] or
//!    [`report_value`]. Reporters must not wait for locks.
//! 4. Take a [`snapshot()`], or call [`serve()`] once so that `about-memory` can take one while the
//!    program runs.
//!
//! # Costs
//!
//! * Measuring visits every value once. Containers of numbers are a single size query.
//! * A snapshot adds figures of the system: 0.1 ms in a small program, 4 to 5 ms for each resident
//!   gigabyte. glibc's statistics take up to 25 ms in a heap with half a million holes.
//!   [`Collector::quick`] leaves both out.
//! * [`scope!`] takes about 3 ns. A server is one sleeping thread.
//! * With default features, the dependencies are `flate2`, `inventory`, `libc`, `serde` and
//!   `serde_json`, and the derive's. Without `std`, measuring alone needs none of them.
//!
//! # Next
//!
//! * [`variations`]: members, formulas, trait objects, graphs with shared nodes.
//! * [`MallocSizeOf`](trait@MallocSizeOf): the accuracy for each type of std, and implementations
//!   by hand.
//! * [`distinguished`] and `metrics`: single figures for telemetry, and all reports for Prometheus.
//! * [`serve`](mod@serve): saving reports near a memory limit, and commands of the program's own.
//! * The crate `dmd`: dark matter, double reports, and tests that keep reports complete.

#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    all(feature = "std", not(unix)),
    expect(dead_code, unreachable_pub, reason = "helpers of the server, which only Unix has")
)]

extern crate alloc;
// The derive and the doc examples refer to this crate by its name, like its users.
extern crate self as memreport;

#[cfg(feature = "std")]
mod thread;
mod field;
mod tracker;
mod allocator;
mod measure;
mod impls;
#[cfg(feature = "std")]
mod event;
#[cfg(feature = "std")]
mod report;
#[cfg(feature = "std")]
mod process;
#[cfg(feature = "std")]
pub mod snapshot;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(all(unix, feature = "std"))]
pub mod serve;
#[cfg(all(feature = "derive", feature = "std"))]
#[doc = include_str!("measure/variations.md")]
pub mod variations {}

#[cfg(feature = "tracing")]
pub use event::{scope_table::SpanIds, spans::ScopeLayer};
pub use field::{Field, Shared, SkippedField};
pub use impls::in_cell;
#[cfg(feature = "malloc_size_of")]
pub use measure::bridge;
pub use measure::lookahead::Lookahead;
pub use measure::measured::{Measured, Part};
pub use measure::ops::Ops;
pub use measure::size_of::{MallocShallowSizeOf, MallocSizeOf, measure};
pub use measure::sizes::{HasSizes, sizes_of};
pub use measure::this::{OwnsBlock, SizeOfExcludingThis, SizeOfIncludingThis};
pub use measure::traversal::{MallocSizeOfFn, Traversal};
#[cfg(feature = "derive")]
pub use memreport_derive::{MallocSizeOf, SizeOfExcludingThis, SizeOfIncludingThis};
#[cfg(all(unix, feature = "std"))]
pub use serve::serve;
#[cfg(feature = "std")]
pub use {
    allocator::counters::HeapCounters,
    allocator::declaration::heap_counters,
    allocator::{Counted, HeapRest, HeapStatistics, LayoutSizes, UsableSize},
    event::callback::Registration,
    event::cycle::{Cycle, cycle},
    event::listeners::on_memory_event,
    event::mark::mark,
    event::memory_event::{MemoryEvent, Slice},
    event::scope::{Scope, Scoped, enter_scope, in_scope},
    field::skipped_fields,
    process::distinguished,
    process::minimize::{Minimized, minimize, on_minimize},
    report::counted_heap::CountedHeap,
    report::missed::{Missed, MissedReason},
    report::registry::{register, register_weak, report_value},
    report::reporter::{Reporter, Reports},
    report::{Kind, Report, Units},
    snapshot::Snapshot,
    snapshot::collect::{Collector, snapshot},
};

/// Items for generated code and for the crate `dmd`, without a promise of stability.
#[doc(hidden)]
pub mod __private {
    pub use crate::impls::features::FEATURES;
    pub use crate::measure::ops::{Fetch, FetchAny, FetchMeasurable};
    pub use crate::measure::size_of::measure_recorded;
    #[cfg(all(unix, feature = "std"))]
    pub use crate::process::environment::{ANONYMIZE_VARIABLE, is_privileged, temporary_folder};
    #[cfg(all(unix, feature = "std"))]
    pub use crate::serve::StaticCommand;
    #[cfg(all(unix, feature = "std"))]
    pub use crate::serve::save_folder::{Folder, Limits};
    #[cfg(all(unix, feature = "std"))]
    pub use crate::snapshot::descriptor::out_of_the_way;
    #[cfg(all(unix, feature = "std"))]
    pub use crate::snapshot::files::unnamed_file;
    #[cfg(not(feature = "std"))]
    pub use crate::submit_nowhere as submit;
    #[cfg(all(memreport_preload, feature = "std"))]
    pub use crate::thread::HookLocal;
    pub use crate::tracker::Tracker;
    pub use crate::tracker::claim::{
        AroundBegin, AtBegin, Block, Claim, CountedBlocks, ExpectedBlock, ExpectedBlocks,
        ExpectedSizes, Found, Place, Wrong,
    };
    pub use crate::tracker::claim_batch::{ClaimBatch, NumberedRegion, QuickClaims};
    pub use crate::tracker::claimant::{Claimant, RecentClaimants};
    pub use crate::tracker::prefetch::fetch as prefetch;
    pub use crate::tracker::recorder::{FieldCache, Position, Recorder};
    pub use crate::tracker::region_blocks::{RegionBlocks, SizeCodes};
    pub use crate::tracker::short_claim::{
        ClaimantBits, Region, RegionNumber, ShortClaim, pack_sizes, unpack_sizes, untagged,
    };
    pub use crate::tracker::size_classes::SizeClasses;
    pub use crate::tracker::words::{
        CAN_READ as CAN_READ_WORDS, Words, is_tagged, read as read_word, words_of,
    };
    #[cfg(feature = "std")]
    pub use {
        crate::allocator::counters::{
            HeapWatch, ThreadSlot, allocated, count_earlier, freed, thread_counters, thread_stops,
        },
        crate::allocator::declaration::{Declaration, tracker},
        crate::allocator::loaded::stay_loaded,
        crate::allocator::system::bytes_in_use,
        crate::allocator::thread_end::ThreadEnd,
        crate::event::attribution::current_attribution,
        crate::event::mark::{Mark, MarkReader},
        crate::event::on_alloc::{C_HEAP, OWN, as_c_heap, as_own, current_on_alloc},
        crate::event::scope::{ScopeCallsite, current_scope},
        crate::event::scope_table::{
            all_scopes, all_span_ids, scope_link, scope_name_number, try_all_scopes,
        },
        crate::report::by_origin::origin_reporters,
        crate::report::counted_heap::on_alloc_path,
        crate::report::registry::StaticReporter,
        crate::snapshot::atomically,
        crate::snapshot::files::{PrivateFile, copy_private},
        crate::snapshot::stamp::stamp,
        crate::tracker::attribution::{
            Attributed, AttributedBy, LIBRARIES, Origin, OriginReporter, inferred_path,
        },
        crate::tracker::findings::{Ending, Findings, Recording},
        inventory::submit,
    };
}

/// Tests the program of the README.
#[cfg(all(doctest, feature = "derive", feature = "std"))]
#[doc = include_str!("../README.md")]
mod readme {}
