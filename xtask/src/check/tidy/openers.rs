//! The first word of a doc comment: a verb or a noun, and seldom a question word.

use super::comments::{Comment, Style, blocks};
use super::files::Workspace;
use super::outcome::Outcome;

/// Words that begin a riddle rather than a description.
const QUESTION_WORDS: [&str; 7] = ["What", "How", "Who", "As", "Whether", "Whose", "Whom"];

/// One doc comment of this many may begin with such a word.
const ONE_IN: usize = 100;

/// Checks that at most one doc comment of a hundred begins with a question word.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let (mut all, mut offenders) = (0, Vec::new());
    for source in &workspace.sources {
        let blocks = blocks(&source.comments).filter(|block| block[0].style != Style::Plain);
        for block in blocks {
            all += 1;
            if begins_badly(&block[0]) {
                let Comment { line, text, .. } = &block[0];
                offenders.push(format!("{}:{line}:{text}", source.path));
            }
        }
    }
    let count = offenders.len();
    let summary = format!("{count} of {all} doc comments; at most one in {ONE_IN}");
    Outcome { holds: count * ONE_IN <= all, summary, offenders, ..Outcome::default() }
}

fn begins_badly(first: &Comment) -> bool {
    let mut words = first.text.trim_start().split(|letter: char| !letter.is_alphanumeric());
    words.next().is_some_and(|word| QUESTION_WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_riddle_in_a_hundred_is_seen() {
        let riddle = "/// What is left.\n/// How so.\nfn a() {}\n\n/// Ask whether.\nfn b() {}\n";
        let outcome = check(&Workspace::of(&[("a.rs", riddle)]));
        assert!(!outcome.holds);
        assert_eq!(outcome.offenders, ["a.rs:1: What is left."]);
        let many = format!("{riddle}{}", "/// Returns it.\nfn c() {}\n".repeat(98));
        assert!(check(&Workspace::of(&[("a.rs", &many)])).holds);
    }
}
