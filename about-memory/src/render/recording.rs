//! Writes the summary of a recording as text or JSON.

pub(crate) mod text;
pub(crate) mod json;
