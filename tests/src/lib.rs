//! Subject programs are in `bin`; here is only what keeps the README true.

/// The README's examples, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
