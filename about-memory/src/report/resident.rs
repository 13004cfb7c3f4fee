//! Explains resident memory, from the system's figures down to reports, and its growth.

pub(crate) mod blocks;
pub(crate) mod snapshot;
pub(crate) mod account;
pub(crate) mod verdict;
pub(crate) mod explanation;

pub use account::{Line, Sum, sums};
pub use blocks::Blocks;
pub use explanation::{ComparedSum, Explanation};
pub use snapshot::{ProcessSnapshot, ProcessSnapshots};
pub use verdict::{Cause, Verdict, of as verdict};
