//! Implements the traits: one file for each family of std's types, and one for each crate.
//!
//! Each file states its accuracy: *exact* if an allocator is declared, *exact with the tracker*
//! (and a formula without it), or a *lower bound*. The formulas fall short by the allocator's
//! rounding.

#[macro_use]
mod plain;
#[cfg(feature = "std")]
mod system;
mod composed;
mod text;
mod sequence;
mod boxed;
mod cells;
mod lazy;
mod errors;
#[cfg(feature = "std")]
mod locks;
mod shared;
mod deque;
mod list;
#[cfg(any(
    feature = "std",
    feature = "hashbrown",
    feature = "hashbrown-0_15",
    feature = "indexmap",
    feature = "lru",
    feature = "string-interner"
))]
mod table;
#[cfg(any(
    feature = "std",
    feature = "hashbrown",
    feature = "hashbrown-0_15",
    feature = "indexmap"
))]
mod maps;
#[cfg(any(feature = "im", feature = "imbl"))]
mod persistent;
#[cfg(feature = "std")]
mod hash;
mod btree;
mod iterators;
#[cfg(feature = "std")]
mod io;
#[cfg(feature = "std")]
mod threads;
#[cfg(feature = "std")]
mod process;
#[cfg(feature = "std")]
mod channel;

pub use cells::in_cell;

#[cfg(feature = "ahash")]
mod ahash;
#[cfg(feature = "anyhow")]
mod anyhow;
#[cfg(feature = "archery")]
mod archery;
#[cfg(feature = "arc-swap")]
mod arc_swap;
#[cfg(feature = "arrayvec")]
mod arrayvec;
#[cfg(feature = "arrow-buffer")]
mod arrow_buffer;
#[cfg(feature = "bitvec")]
mod bitvec;
#[cfg(feature = "bumpalo")]
mod bumpalo;
#[cfg(feature = "bytes")]
mod bytes;
#[cfg(feature = "chrono")]
mod chrono;
#[cfg(feature = "compact_str")]
mod compact_str;
#[cfg(feature = "crossbeam-channel")]
mod crossbeam_channel;
#[cfg(feature = "crossbeam-queue")]
mod crossbeam_queue;
#[cfg(feature = "crossbeam-utils")]
mod crossbeam_utils;
#[cfg(feature = "dashmap")]
mod dashmap;
#[cfg(feature = "either")]
mod either;
#[cfg(feature = "generational-arena")]
mod generational_arena;
#[cfg(feature = "glam")]
mod glam;
#[cfg(feature = "half")]
mod half;
#[cfg(any(feature = "hashbrown", feature = "hashbrown-0_15"))]
mod hashbrown;
#[cfg(feature = "hashbrown-0_14")]
mod hashbrown_0_14;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "im")]
mod im;
#[cfg(feature = "imbl")]
mod imbl;
#[cfg(feature = "indexmap")]
mod indexmap;
#[cfg(feature = "jiff")]
mod jiff;
#[cfg(feature = "lasso")]
mod lasso;
#[cfg(feature = "lock_api")]
mod lock_api;
#[cfg(feature = "lru")]
mod lru;
#[cfg(feature = "moka")]
mod moka;
#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(feature = "num-bigint")]
mod num_bigint;
#[cfg(feature = "once_cell")]
mod once_cell;
#[cfg(feature = "ordermap")]
mod ordermap;
#[cfg(feature = "parking_lot")]
mod parking_lot;
#[cfg(feature = "petgraph")]
mod petgraph;
#[cfg(feature = "prost-types")]
mod prost_types;
#[cfg(feature = "roaring")]
mod roaring;
#[cfg(feature = "rpds")]
mod rpds;
#[cfg(feature = "rust_decimal")]
mod rust_decimal;
#[cfg(feature = "rustc-hash")]
mod rustc_hash;
#[cfg(feature = "secrecy")]
mod secrecy;
#[cfg(feature = "serde_json")]
mod serde_json;
#[cfg(feature = "simd-json")]
mod simd_json;
#[cfg(feature = "slab")]
mod slab;
#[cfg(feature = "slotmap")]
mod slotmap;
#[cfg(feature = "smallvec")]
mod smallvec;
#[cfg(feature = "smol_str")]
mod smol_str;
#[cfg(feature = "string-interner")]
mod string_interner;
#[cfg(feature = "thin-vec")]
mod thin_vec;
#[cfg(feature = "time")]
mod time;
#[cfg(feature = "tinyvec")]
mod tinyvec;
#[cfg(feature = "tokio")]
mod tokio;
#[cfg(feature = "tokio")]
mod tokio_channels;
#[cfg(feature = "triomphe")]
mod triomphe;
#[cfg(feature = "url")]
mod url;
#[cfg(feature = "uuid")]
mod uuid;
pub(crate) mod features;
