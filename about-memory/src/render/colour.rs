//! Colours text for terminals: lines of trees, values, invalid values, marks of differences.

use std::fmt;

/// The style of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// The lines of a tree.
    Line,
    /// An amount.
    Value,
    /// An invalid amount, and its mark.
    Invalid,
    /// A process or section.
    Heading,
    /// The mark of a path only in the first file.
    Gone,
    /// The mark of a path only in the second file.
    New,
}

/// Text in its style, or plain.
#[derive(Debug)]
pub struct Painted<'t> {
    text: &'t str,
    style: Option<Style>,
}

/// Returns the text in a style if colours are on.
pub fn paint(text: &str, style: Style, is_coloured: bool) -> Painted<'_> {
    Painted { text, style: is_coloured.then_some(style) }
}

impl fmt::Display for Painted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = match self.style {
            Some(_) if self.text.is_empty() => return Ok(()),
            None => return f.write_str(self.text),
            Some(Style::Line) => "2",
            Some(Style::Value) => "1",
            Some(Style::Invalid) => "1;31",
            Some(Style::Heading) => "1;4",
            Some(Style::Gone) => "32",
            Some(Style::New) => "33",
        };
        write!(f, "\x1b[{code}m{}\x1b[0m", self.text)
    }
}
