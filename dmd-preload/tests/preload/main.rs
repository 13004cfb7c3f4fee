//! Programs that were built without DMD, with and without the preloaded library.
//!
//! A test whose compiler or program is missing prints `not run:` with its name.

mod subject;
mod functions;
mod counted;
mod lives;
mod forked;
mod ends;
mod programs;
mod dumps;
mod refused;
mod without_glibc;
mod own_dmd;
mod with_c;
mod same_process;
mod attach;
mod inspect;
mod variables;
mod killed;
mod copied;
