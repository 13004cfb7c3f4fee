//! A crate of two hundred tests that check their memory. Ten of them have a planted defect, and
//! must fail.
//!
//! `cargo xtask suite` runs it under `cargo test` and nextest.

// As the other test binary names it.
#[cfg(test)]
extern crate self as suite;

pub mod shop;

#[cfg(test)]
mod unit;

#[cfg(test)]
mod planted;

#[cfg(test)]
dmd::global_allocator!();
