//! Draws the terminal view of a running program.

pub(crate) mod lines;
pub(crate) mod screen;
