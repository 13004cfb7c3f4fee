//! Says where the bytes of a Rust program's memory are: measure values, report them by path, save them for about:memory.

#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;
// The derive and the doc examples name this crate as its users do.
extern crate self as memreport;

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
pub use event::spans::ScopeLayer;
pub use field::{Field, Shared, SkippedField};
pub use impls::in_cell;
#[cfg(feature = "malloc_size_of")]
pub use measure::bridge;
pub use measure::measured::{Measured, Part};
pub use measure::ops::{Lookahead, Ops};
pub use measure::size_of::{MallocShallowSizeOf, MallocSizeOf, measure};
pub use measure::sizes::{HasSizes, sizes_of};
#[cfg(feature = "derive")]
pub use memreport_derive::MallocSizeOf;
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
    report::registry::{register, register_weak, report_value},
    report::reporter::{Reporter, Reports},
    report::{Kind, Report, Units},
    snapshot::Snapshot,
    snapshot::collect::{Collector, snapshot},
};

/// Not public: for generated code, and for the crate `dmd`.
#[doc(hidden)]
pub mod __private {
    pub use crate::impls::features::FEATURES;
    pub use crate::measure::ops::{Fetch, FetchAny, FetchMeasurable};
    pub use crate::measure::size_of::measure_recorded;
    #[cfg(all(unix, feature = "std"))]
    pub use crate::serve::StaticCommand;
    #[cfg(all(unix, feature = "std"))]
    pub use crate::serve::saved::{Folder, Limits};
    #[cfg(not(feature = "std"))]
    pub use crate::submit_nowhere as submit;
    pub use crate::tracker::Tracker;
    pub use crate::tracker::claim::{Block, Claim, Found, Place, Wrong};
    pub use crate::tracker::recorder::{HeardOf, Recorder, Who};
    #[cfg(feature = "std")]
    pub use {
        crate::allocator::counters::{allocated, freed},
        crate::allocator::declaration::{Declaration, tracker},
        crate::allocator::loaded::stay_loaded,
        crate::event::mark::{Mark, MarkReader},
        crate::event::on_alloc::{OWN, as_own, current_on_alloc},
        crate::event::scope::{Entrance, all_scopes, current_scope},
        crate::report::counted_heap::on_alloc_path,
        crate::report::registry::StaticReporter,
        crate::snapshot::atomically,
        crate::snapshot::stamp::stamp,
        crate::tracker::findings::{Ending, Findings, Recording},
        inventory::submit,
    };
}
