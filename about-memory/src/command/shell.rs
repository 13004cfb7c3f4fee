//! Integrates the program into shells and `man`.

pub mod completions;
pub mod man;
