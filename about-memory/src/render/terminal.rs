//! Draws the terminal view of a running program.

pub(crate) mod lines;
mod row;
pub(crate) mod screen;
