//! Writes the explanation of resident memory as text or HTML.

pub mod text;
pub mod html;
