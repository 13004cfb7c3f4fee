//! Phrases that hide a mechanism which has a usual name.

use super::comments::{Comment, blocks};
use super::files::Workspace;
use super::outcome::Outcome;

/// Phrases that no comment may hold, in lower case.
const BANNED: [&str; 36] = [
    "are heard",
    "are passed over",
    "are to be",
    "are told",
    "as for",
    "asked for",
    "at leisure",
    "by which ways",
    "can be asked",
    "comes and goes",
    "come and go",
    "gave back",
    "give back",
    "given back",
    "gives back",
    "handed on",
    "hands on",
    "has heard",
    "in whose name",
    "is heard",
    "is passed over",
    "is to be",
    "is told",
    "knows nothing",
    "less how long",
    "nothing is heard",
    "passed over",
    "puts off",
    "say so",
    "says so",
    "that of the",
    "the one that",
    "those of the",
    "what is left",
    "whoever",
    "wins a draw",
];

/// Checks that no comment holds a banned phrase.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let mut offenders = Vec::new();
    for source in &workspace.sources {
        for block in blocks(&source.comments) {
            for (line, phrase) in found(block) {
                offenders.push(format!("{}:{line}: \"{phrase}\"", source.path));
            }
        }
    }
    let summary = format!("{} banned phrases in comments", offenders.len());
    Outcome::none_of(offenders).with_summary(summary)
}

/// Returns the banned phrases of a block with their lines.
///
/// A phrase may wrap, but does not cross a comma or a period.
fn found(block: &[Comment]) -> Vec<(usize, &'static str)> {
    let mut text = String::from(" ");
    let mut starts = Vec::new();
    for comment in block {
        starts.push((text.len(), comment.line));
        for letter in comment.text.chars().flat_map(char::to_lowercase) {
            match letter {
                letter if letter.is_alphanumeric() || letter == '\'' => text.push(letter),
                letter if letter.is_whitespace() => push_space(&mut text),
                other => text.extend([' ', other, ' ']),
            }
        }
        push_space(&mut text);
    }
    let line_at = |at: usize| starts.iter().rev().find(|(start, _)| *start <= at + 1);
    let mut found = Vec::new();
    for phrase in BANNED {
        for (at, _) in text.match_indices(&format!(" {phrase} ")) {
            found.push((line_at(at).map_or(0, |(_, line)| *line), phrase));
        }
    }
    found
}

/// Separates words by one space, however long the gap is.
fn push_space(text: &mut String) {
    if !text.ends_with(' ') {
        text.push(' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banned_phrases_are_seen_where_they_begin() {
        for (text, expected) in [
            ("/// A block that is to be\n/// freed.", &["a.rs:1: \"is to be\""][..]),
            ("fn a() {}\n// In whose\n// name.", &["a.rs:2: \"in whose name\""]),
            ("/// As for the rest, at leisure.", &["a.rs:1: \"as for\"", "a.rs:1: \"at leisure\""]),
            ("/// Bias for it. What is, left.", &[]),
            ("let text = \"at leisure\";", &[]),
        ] {
            let mut offenders = check(&Workspace::of(&[("a.rs", text)])).offenders;
            offenders.sort();
            assert_eq!(offenders, expected, "{text}");
        }
    }
}
