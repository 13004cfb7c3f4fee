//! The dump file: format 5 of DMD with an extension key of our own.

#[cfg(feature = "analysis")]
pub mod read;
