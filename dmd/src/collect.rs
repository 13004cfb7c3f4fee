//! Collections: live blocks merged with the claims of reporters.
//!
//! Reading order: `tracking` (the interface to memreport), `claims` (buffer and log), `collection`
//! (from the first claim to the dump), `pass` (the merge with the table), `restriction` (to the
//! blocks of a test), `balance` with `groups`
//! and `summary` (the sums), `holders` (pointers to unreported blocks), `scan` (contents of
//! blocks), `findings` (the result).
//!
//! Invariants:
//!
//! * A block is in a dump exactly once if it was allocated before the collection and is live at its
//!   end. Others are left out; the epoch in their packed word tells them apart.
//! * During the pass over the table nothing is allocated on the program's heap.
//! * The sums of a [`Summary`] add up to `heap_allocated` to the byte.

pub(crate) mod age;
pub(crate) mod claims;
pub(crate) mod groups;
pub(crate) mod holders;
pub(crate) mod summary;
mod balance;
pub(crate) mod scan;
pub(crate) mod findings;
mod pass;
pub(crate) mod restriction;
mod collection;
mod tracking;

pub use findings::Dump;
pub use summary::{Estimate, Sampled, Sum, Summary};
pub use tracking::Tracking;
