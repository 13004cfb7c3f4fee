//! Reads reports, dumps and recordings from files, folders and running programs.

pub mod args;
pub mod live;
pub mod kind;
pub mod open;
pub mod dump;
pub(crate) mod folder;
pub(crate) mod progress;
mod missing;

pub use args::InputArgs;
