//! Runs the commands: one file for each, in folders as on the command line.

pub mod flags;
pub mod view;
pub mod launch;
pub mod process;
pub mod heap;
pub mod convert;
pub mod check;
pub mod annotate;
pub mod external;
pub mod shell;
