//! Lists the crates whose types this build measures, for the dump.

/// The enabled features that are named after a crate.
pub const FEATURES: &[&str] = &[
    #[cfg(feature = "ahash")]
    "ahash",
    #[cfg(feature = "anyhow")]
    "anyhow",
    #[cfg(feature = "arc-swap")]
    "arc-swap",
    #[cfg(feature = "archery")]
    "archery",
    #[cfg(feature = "arrayvec")]
    "arrayvec",
    #[cfg(feature = "arrow-buffer")]
    "arrow-buffer",
    #[cfg(feature = "bitvec")]
    "bitvec",
    #[cfg(feature = "bumpalo")]
    "bumpalo",
    #[cfg(feature = "bytes")]
    "bytes",
    #[cfg(feature = "chrono")]
    "chrono",
    #[cfg(feature = "compact_str")]
    "compact_str",
    #[cfg(feature = "crossbeam-channel")]
    "crossbeam-channel",
    #[cfg(feature = "crossbeam-queue")]
    "crossbeam-queue",
    #[cfg(feature = "crossbeam-utils")]
    "crossbeam-utils",
    #[cfg(feature = "dashmap")]
    "dashmap",
    #[cfg(feature = "either")]
    "either",
    #[cfg(feature = "generational-arena")]
    "generational-arena",
    #[cfg(feature = "glam")]
    "glam",
    #[cfg(feature = "half")]
    "half",
    #[cfg(feature = "hashbrown")]
    "hashbrown",
    #[cfg(feature = "hashbrown-0_14")]
    "hashbrown-0_14",
    #[cfg(feature = "hashbrown-0_15")]
    "hashbrown-0_15",
    #[cfg(feature = "http")]
    "http",
    #[cfg(feature = "im")]
    "im",
    #[cfg(feature = "imbl")]
    "imbl",
    #[cfg(feature = "indexmap")]
    "indexmap",
    #[cfg(feature = "jiff")]
    "jiff",
    #[cfg(feature = "lasso")]
    "lasso",
    #[cfg(feature = "lock_api")]
    "lock_api",
    #[cfg(feature = "lru")]
    "lru",
    #[cfg(feature = "malloc_size_of")]
    "malloc_size_of",
    #[cfg(feature = "moka")]
    "moka",
    #[cfg(feature = "nalgebra")]
    "nalgebra",
    #[cfg(feature = "ndarray")]
    "ndarray",
    #[cfg(feature = "num-bigint")]
    "num-bigint",
    #[cfg(feature = "once_cell")]
    "once_cell",
    #[cfg(feature = "ordermap")]
    "ordermap",
    #[cfg(feature = "parking_lot")]
    "parking_lot",
    #[cfg(feature = "petgraph")]
    "petgraph",
    #[cfg(feature = "prost-types")]
    "prost-types",
    #[cfg(feature = "roaring")]
    "roaring",
    #[cfg(feature = "rpds")]
    "rpds",
    #[cfg(feature = "rust_decimal")]
    "rust_decimal",
    #[cfg(feature = "rustc-hash")]
    "rustc-hash",
    #[cfg(feature = "secrecy")]
    "secrecy",
    #[cfg(feature = "serde_json")]
    "serde_json",
    #[cfg(feature = "simd-json")]
    "simd-json",
    #[cfg(feature = "slab")]
    "slab",
    #[cfg(feature = "slotmap")]
    "slotmap",
    #[cfg(feature = "smallvec")]
    "smallvec",
    #[cfg(feature = "smol_str")]
    "smol_str",
    #[cfg(feature = "string-interner")]
    "string-interner",
    #[cfg(feature = "thin-vec")]
    "thin-vec",
    #[cfg(feature = "time")]
    "time",
    #[cfg(feature = "tinyvec")]
    "tinyvec",
    #[cfg(feature = "tokio")]
    "tokio",
    #[cfg(feature = "triomphe")]
    "triomphe",
    #[cfg(feature = "url")]
    "url",
    #[cfg(feature = "uuid")]
    "uuid",
];
