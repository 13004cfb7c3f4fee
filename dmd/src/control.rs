//! Requests from outside: `about-memory run`, recordings, saves at intervals, a running program's socket.

pub mod run;
pub mod record;
pub mod saves;
mod live;
mod at_start;

pub use at_start::at_start;
