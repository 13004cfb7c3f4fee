//! Requests from outside: `about-memory run`, recordings, saves at intervals, socket commands.
//!
//! Read `at_start` first: it runs before `main` and starts the others, by environment variables:
//! `run` ([`run::VARIABLE`]), `record` ([`record::VARIABLE`]) and `saves` ([`saves::VARIABLE`]).
//! `commands` adds tracking, logs and recordings to memreport's socket. `attach` starts a tracker
//! that was loaded into a running program.
//!
//! Invariant: threads of this room mark their memory as the tracker's own, so that it is in no
//! dump.

pub mod run;
pub mod record;
pub mod saves;
mod commands;
mod at_start;
mod attach;
mod late_server;
mod sudden_exit;

pub use at_start::{at_start, at_start_preloaded};
pub use attach::{AttachError, Earlier, attach, spawn_own};
pub use sudden_exit::before_sudden_exit;
