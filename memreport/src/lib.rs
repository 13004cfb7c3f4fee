//! Says where the bytes of a Rust program's memory are: measure values, report them by path, save them for about:memory.

#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;
// The derive and the doc examples name this crate as its users do.
extern crate self as memreport;

mod size_of;
mod sizes;
mod field;
mod ops;
mod guard;
mod words;
mod impls;
#[cfg(feature = "std")]
mod allocator;
#[cfg(feature = "std")]
mod counters;
#[cfg(feature = "std")]
mod loaded;
#[cfg(feature = "std")]
mod counted_heap;
#[cfg(feature = "std")]
mod report;
#[cfg(feature = "std")]
mod reporter;
#[cfg(feature = "std")]
mod registry;
#[cfg(feature = "std")]
mod process;
#[cfg(feature = "std")]
mod collect;
#[cfg(feature = "std")]
pub mod snapshot;
mod tracker;
#[cfg(feature = "std")]
mod findings;
#[cfg(feature = "std")]
mod on_alloc;
mod features;
#[cfg(all(feature = "derive", feature = "std"))]
#[doc = include_str!("variations.md")]
pub mod variations {}
#[cfg(feature = "malloc_size_of")]
pub mod bridge;

#[cfg(feature = "std")]
pub use allocator::{Counted, LayoutSizes, UsableSize};
#[cfg(feature = "std")]
pub use collect::{Collector, snapshot};
#[cfg(feature = "std")]
pub use counted_heap::CountedHeap;
#[cfg(feature = "std")]
pub use counters::{HeapCounters, heap_counters};
#[cfg(feature = "std")]
pub use field::skipped_fields;
pub use field::{Field, Shared, SkippedField};
#[cfg(feature = "derive")]
pub use memreport_derive::MallocSizeOf;
pub use ops::{Lookahead, Ops};
#[cfg(feature = "std")]
pub use registry::{Registration, register, register_weak, report_value};
#[cfg(feature = "std")]
pub use report::{Kind, Report, Units};
#[cfg(feature = "std")]
pub use reporter::{Reporter, Reports};
pub use size_of::{MallocShallowSizeOf, MallocSizeOf, Measured, Part, measure};
pub use sizes::{HasSizes, sizes_of};
#[cfg(feature = "std")]
pub use snapshot::Snapshot;

/// Not public: for generated code, and for the crate `dmd`.
#[doc(hidden)]
pub mod __private {
    #[cfg(feature = "std")]
    pub use inventory::submit;

    #[cfg(not(feature = "std"))]
    pub use crate::__submit_nowhere as submit;
    #[cfg(feature = "std")]
    pub use crate::allocator::{Declaration, tracker};
    #[cfg(feature = "std")]
    pub use crate::counted_heap::on_alloc_path;
    #[cfg(feature = "std")]
    pub use crate::counters::{allocated, freed};
    pub use crate::features::FEATURES;
    #[cfg(feature = "std")]
    pub use crate::findings::{Ending, Findings, Recording};
    #[cfg(feature = "std")]
    pub use crate::loaded::stay_loaded;
    #[cfg(feature = "std")]
    pub use crate::on_alloc::{OWN, as_own, current_on_alloc};
    pub use crate::ops::{Fetch, FetchAny, FetchMeasurable};
    #[cfg(feature = "std")]
    pub use crate::registry::StaticReporter;
    pub use crate::size_of::measure_recorded;
    #[cfg(feature = "std")]
    pub use crate::snapshot::atomically;
    pub use crate::tracker::{Block, Claim, Found, Place, Recorder, Tracker, Who, Wrong};
}
