//! The comments of a file, and the blocks that consecutive lines form.

use super::tokens::{Kind, tokens};

/// A kind of comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// `//`.
    Plain,
    /// `///`.
    Item,
    /// `//!`.
    Module,
}

/// One line of a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) style: Style,
    /// Counted from 1.
    pub(crate) line: usize,
    /// The text behind the marker.
    pub(crate) text: String,
}

/// Returns every line of every comment.
pub(crate) fn comments(text: &str) -> Vec<Comment> {
    let mut found = Vec::new();
    for token in tokens(text).iter().filter(|token| token.kind == Kind::Comment) {
        for (number, line) in token.text.lines().enumerate() {
            let (style, text) = style(line);
            let text = text.trim_end_matches("*/").to_owned();
            found.push(Comment { style, line: token.line + number, text });
        }
    }
    found
}

fn style(line: &str) -> (Style, &str) {
    // Four slashes are no doc comment.
    let item = line.strip_prefix("///").filter(|text| !text.starts_with('/'));
    match (item, line.strip_prefix("//!")) {
        (Some(text), _) => (Style::Item, text),
        (_, Some(text)) => (Style::Module, text),
        _ => (Style::Plain, line.trim_start_matches(['/', '*'])),
    }
}

/// Returns runs of comments of one style on consecutive lines.
pub(crate) fn blocks(comments: &[Comment]) -> impl Iterator<Item = &[Comment]> {
    comments.chunk_by(|one, next| one.style == next.style && one.line + 1 == next.line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_form_blocks() {
        let text = "//! a\n//! b\n\n/// c\n// d\nlet x = \"// no\"; // e\n//// f\n/* g\n h */";
        let comments = comments(text);
        let shown: Vec<String> = blocks(&comments)
            .map(|block| {
                let texts: Vec<&str> = block.iter().map(|comment| comment.text.trim()).collect();
                format!("{:?} {}: {}", block[0].style, block[0].line, texts.join("+"))
            })
            .collect();
        assert_eq!(shown, ["Module 1: a+b", "Item 4: c", "Plain 5: d+e+f+g+h"]);
    }
}
