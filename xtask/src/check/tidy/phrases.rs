//! Phrases that hide a mechanism which has a usual name.

use super::comments::{Comment, Style, blocks};
use super::files::Workspace;
use super::outcome::Outcome;
use super::tokens::{Kind, Token, tokens};

/// Phrases that no comment and no string may contain, in lower case.
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

/// Files whose strings are the phrases themselves.
const LISTS: [&str; 2] = ["xtask/src/check/tidy/phrases.rs", "xtask/src/check/tidy/openers.rs"];

/// Phrases in printed text which tests hold to the byte.
const KEPT: [(&str, &str); 8] = [
    ("about-memory/src/render/resident/text.rs", "what is left"),
    ("about-memory/src/report/resident/account.rs", "what is left"),
    ("about-memory/src/report/resident/verdict.rs", "gave back"),
    ("dmd-analysis/src/analysis/suggest/wrong.rs", "the one that"),
    ("dmd-analysis/src/export/firefox/timeline.rs", "given back"),
    ("dmd-analysis/src/heap/accounts.rs", "asked for"),
    ("dmd/src/testing/budget.rs", "given back"),
    ("memreport/src/snapshot/read/error.rs", "is to be"),
];

/// Checks that no comment and no string contains a banned phrase.
///
/// Strings of tests are free: they repeat what the program prints.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let mut offenders = Vec::new();
    for source in &workspace.sources {
        let mut all: Vec<(usize, &str)> = blocks(&source.comments).flat_map(found).collect();
        if !source.is_test() && !LISTS.contains(&&*source.path) {
            let strings = strings(&source.text);
            let in_strings = strings.iter().flat_map(|lines| found(lines));
            all.extend(in_strings.filter(|(_, phrase)| !KEPT.contains(&(&source.path, phrase))));
        }
        all.sort_unstable();
        let path = &source.path;
        offenders.extend(all.iter().map(|(line, phrase)| format!("{path}:{line}: \"{phrase}\"")));
    }
    let summary = format!("{} banned phrases in comments and strings", offenders.len());
    Outcome::none_of(offenders).with_summary(summary)
}

/// Returns the strings of a file, each as its lines.
fn strings(text: &str) -> Vec<Vec<Comment>> {
    let is_string = |token: &&Token<'_>| token.kind == Kind::Literal && token.text.contains('"');
    let lines = |token: &Token<'_>| {
        let lines = token.text.lines().enumerate().map(|(number, line)| Comment {
            style: Style::Plain,
            line: token.line + number,
            text: line.trim_end_matches('\\').replace("\\n", "\n"),
        });
        lines.collect()
    };
    tokens(text).iter().filter(is_string).map(lines).collect()
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
            ("let a = \"x, at\\\n leisure\";", &["a.rs:1: \"at leisure\""]),
            (
                "let a = 'a'; let b = \"a\";\nlet c = r\"\nWhat is left.\";",
                &["a.rs:3: \"what is left\""],
            ),
            ("let text = format!(\"at {leisure}\");", &[]),
        ] {
            let offenders = check(&Workspace::of(&[("a.rs", text)])).offenders;
            assert_eq!(offenders, expected, "{text}");
        }
    }
}
