//! The first word of a doc comment: a verb or a noun, never a question word.

use super::comments::{Comment, Style, blocks};
use super::files::Workspace;
use super::outcome::Outcome;

/// Words that begin a riddle rather than a description.
const QUESTION_WORDS: [&str; 7] = ["What", "How", "Who", "As", "Whether", "Whose", "Whom"];

/// Checks that no doc comment begins with a question word.
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
    let summary = format!("{} of {all} doc comments begin with a question word", offenders.len());
    Outcome::none_of(offenders).with_summary(summary)
}

fn begins_badly(first: &Comment) -> bool {
    let mut words = first.text.trim_start().split(|letter: char| !letter.is_alphanumeric());
    words.next().is_some_and(|word| QUESTION_WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_question_word_is_seen_among_many_openers() {
        let riddle = "/// Whose it is.\n/// How so.\nfn a() {}\n\n/// Ask whether.\nfn b() {}\n";
        let many = format!("{riddle}{}", "/// Returns it.\nfn c() {}\n".repeat(98));
        let outcome = check(&Workspace::of(&[("a.rs", &many)]));
        assert!(!outcome.holds);
        assert_eq!(outcome.offenders, ["a.rs:1: Whose it is."]);
    }
}
