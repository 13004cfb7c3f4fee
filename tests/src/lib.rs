//! The exercise that the subject programs in `bin` share.

pub mod exercise;

/// The README's examples, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
