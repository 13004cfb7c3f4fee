//! What people and programs see of a page.

pub mod text;
pub mod descriptions;
pub mod json;
pub mod markdown;
