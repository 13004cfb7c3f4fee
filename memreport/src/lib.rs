//! Says where the bytes of a Rust program's memory are: measure values, report them by path, save them for about:memory.

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
mod allocator;
mod counters;
mod loaded;
mod counted_heap;
mod report;
mod patience;
mod reporter;
mod registry;
mod process;
mod collect;
mod mark;
mod minimize;
pub mod snapshot;
mod tracker;
mod features;
#[cfg(unix)]
pub mod serve;
#[cfg(feature = "derive")]
#[doc = include_str!("variations.md")]
pub mod variations {}
#[cfg(feature = "malloc_size_of")]
pub mod bridge;

pub use allocator::{Counted, LayoutSizes, UsableSize};
pub use collect::{Collector, snapshot};
pub use counted_heap::CountedHeap;
pub use counters::{HeapCounters, heap_counters};
pub use field::{Field, Shared, SkippedField, skipped_fields};
pub use mark::mark;
#[cfg(feature = "derive")]
pub use memreport_derive::MallocSizeOf;
pub use minimize::{Minimized, minimize, on_minimize};
pub use ops::Ops;
pub use registry::{Registration, register, register_weak, report_value};
pub use report::{Kind, Report, Units};
pub use reporter::{Reporter, Reports};
#[cfg(unix)]
pub use serve::serve;
pub use size_of::{MallocShallowSizeOf, MallocSizeOf, Measured, Part, measure};
pub use sizes::{HasSizes, sizes_of};
pub use snapshot::Snapshot;

/// Not public: for generated code, and for the crate `dmd`.
#[doc(hidden)]
pub mod __private {
    pub use inventory::submit;

    pub use crate::allocator::{Declaration, tracker};
    pub use crate::counted_heap::on_alloc_path;
    pub use crate::counters::{allocated, freed};
    pub use crate::features::FEATURES;
    pub use crate::loaded::stay_loaded;
    pub use crate::mark::marks_from;
    pub use crate::ops::{Fetch, FetchAny, FetchMeasurable};
    pub use crate::registry::StaticReporter;
    #[cfg(unix)]
    pub use crate::serve::StaticCommand;
    pub use crate::size_of::measure_recorded;
    pub use crate::snapshot::atomically;
    pub use crate::tracker::{
        Block, Claim, Ending, Findings, Found, OWN, Place, Recorder, Recording, Tracker, Who,
        Wrong, as_own, current_on_alloc,
    };
}
