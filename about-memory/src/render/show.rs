//! Writes memory reports as text, JSON, Markdown or with their descriptions.

pub mod text;
pub mod descriptions;
pub mod json;
pub mod markdown;
