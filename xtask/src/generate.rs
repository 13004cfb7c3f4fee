//! Generated inputs for clients and benchmarks: reports, dumps, and random numbers.

pub(crate) mod dumps;
pub(crate) mod random;
pub(crate) mod reports;
