//! Measures hashers of `rustc-hash`, which own nothing. *Exact.* Its maps and sets are std's.

use rustc_hash::{FxBuildHasher, FxHasher};

owns_nothing!(FxBuildHasher, FxHasher);
