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
mod patience;
#[cfg(feature = "std")]
mod reporter;
#[cfg(feature = "std")]
mod registry;
#[cfg(feature = "std")]
mod process;
#[cfg(feature = "std")]
pub mod distinguished;
#[cfg(feature = "std")]
mod collect;
#[cfg(feature = "std")]
mod mark;
#[cfg(feature = "std")]
mod event;
#[cfg(feature = "std")]
mod scope;
#[cfg(feature = "tracing")]
mod spans;
#[cfg(feature = "std")]
mod minimize;
#[cfg(feature = "std")]
mod stamp;
#[cfg(feature = "std")]
pub mod snapshot;
#[cfg(feature = "metrics")]
pub mod metrics;
mod tracker;
#[cfg(feature = "std")]
mod findings;
#[cfg(feature = "std")]
mod on_alloc;
mod features;
#[cfg(all(unix, feature = "std"))]
pub mod serve;
#[cfg(all(feature = "derive", feature = "std"))]
#[doc = include_str!("variations.md")]
pub mod variations {}
#[cfg(feature = "malloc_size_of")]
pub mod bridge;

pub use field::{Field, Shared, SkippedField};
pub use impls::in_cell;
#[cfg(feature = "derive")]
pub use memreport_derive::MallocSizeOf;
pub use ops::{Lookahead, Ops};
#[cfg(all(unix, feature = "std"))]
pub use serve::serve;
pub use size_of::{MallocShallowSizeOf, MallocSizeOf, Measured, Part, measure};
pub use sizes::{HasSizes, sizes_of};
#[cfg(feature = "tracing")]
pub use spans::ScopeLayer;
#[cfg(feature = "std")]
pub use {
    allocator::{Counted, HeapRest, HeapStatistics, LayoutSizes, UsableSize},
    collect::{Collector, snapshot},
    counted_heap::CountedHeap,
    counters::{HeapCounters, heap_counters},
    event::{Cycle, MemoryEvent, Slice, cycle, on_memory_event},
    field::skipped_fields,
    mark::mark,
    minimize::{Minimized, minimize, on_minimize},
    registry::{Registration, register, register_weak, report_value},
    report::{Kind, Report, Units},
    reporter::{Reporter, Reports},
    scope::{Scope, Scoped, enter_scope, in_scope},
    snapshot::Snapshot,
};

/// Not public: for generated code, and for the crate `dmd`.
#[doc(hidden)]
pub mod __private {
    pub use crate::features::FEATURES;
    pub use crate::ops::{Fetch, FetchAny, FetchMeasurable};
    #[cfg(all(unix, feature = "std"))]
    pub use crate::serve::StaticCommand;
    #[cfg(all(unix, feature = "std"))]
    pub use crate::serve::saved::{Folder, Limits};
    pub use crate::size_of::measure_recorded;
    #[cfg(not(feature = "std"))]
    pub use crate::submit_nowhere as submit;
    pub use crate::tracker::{Block, Claim, Found, HeardOf, Place, Recorder, Tracker, Who, Wrong};
    #[cfg(feature = "std")]
    pub use {
        crate::allocator::{Declaration, tracker},
        crate::counted_heap::on_alloc_path,
        crate::counters::{allocated, freed},
        crate::findings::{Ending, Findings, Recording},
        crate::loaded::stay_loaded,
        crate::mark::{Mark, MarkReader},
        crate::on_alloc::{OWN, as_own, current_on_alloc},
        crate::registry::StaticReporter,
        crate::scope::{Entrance, all_scopes, current_scope},
        crate::snapshot::atomically,
        crate::stamp::stamp,
        inventory::submit,
    };
}
