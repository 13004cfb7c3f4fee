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

impl Style {
    const ALL: [Style; 6] =
        [Style::Line, Style::Value, Style::Invalid, Style::Heading, Style::Gone, Style::New];

    /// Returns the escape sequence that begins the style.
    fn sequence(self) -> &'static str {
        match self {
            Style::Line => "\x1b[2m",
            Style::Value => "\x1b[1m",
            Style::Invalid => "\x1b[1;31m",
            Style::Heading => "\x1b[1;4m",
            Style::Gone => "\x1b[32m",
            Style::New => "\x1b[33m",
        }
    }
}

/// The escape sequence that ends every style.
const END: &str = "\x1b[0m";

/// Returns the escape sequence of a style that a text begins with.
pub(super) fn sequence(text: &str) -> Option<&'static str> {
    let mut sequences = Style::ALL.map(Style::sequence).into_iter().chain([END]);
    sequences.find(|sequence| text.starts_with(sequence))
}

impl fmt::Display for Painted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.style {
            Some(_) if self.text.is_empty() => Ok(()),
            None => f.write_str(self.text),
            // Each sequence is one write: the gate to terminals compares whole sequences.
            Some(style) => {
                f.write_str(style.sequence())?;
                f.write_str(self.text)?;
                f.write_str(END)
            }
        }
    }
}
