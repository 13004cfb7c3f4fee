//! The width of comments, and the length of the front page.

use super::files::Workspace;
use super::outcome::Outcome;

const COLUMNS: usize = 100;
const README_LINES: usize = 150;

/// Checks that no line with a comment is wider than 100 columns.
pub(crate) fn check_comments(workspace: &Workspace) -> Outcome {
    let mut offenders = Vec::new();
    for source in &workspace.sources {
        let lines: Vec<&str> = source.text.lines().collect();
        for comment in &source.comments {
            let width = lines.get(comment.line - 1).map_or(0, |line| line.chars().count());
            if width > COLUMNS {
                offenders.push(format!("{}:{}: {width} columns", source.path, comment.line));
            }
        }
    }
    let summary = format!("{} comments past {COLUMNS} columns", offenders.len());
    Outcome::none_of(offenders).with_summary(summary)
}

/// Checks that the README has at most 150 lines.
pub(crate) fn check_readme(workspace: &Workspace) -> Outcome {
    let lines = workspace.document("README.md").lines().count();
    let summary = format!("{lines} lines; at most {README_LINES}");
    Outcome { holds: lines <= README_LINES, summary, ..Outcome::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_comments_are_seen_and_wide_code_is_not() {
        let wide = "é".repeat(97);
        let text = format!("// {wide}\n/// {wide}\nlet x = \"// {wide}\";\n/// {wide}é\n");
        let outcome = check_comments(&Workspace::of(&[("a.rs", &text)]));
        assert_eq!(outcome.offenders, ["a.rs:2: 101 columns", "a.rs:4: 102 columns"]);
    }

    #[test]
    fn a_long_readme_is_seen() {
        let of =
            |lines: usize| check_readme(&Workspace::of(&[("README.md", &"a\n".repeat(lines))]));
        assert!(of(150).holds);
        assert!(!of(151).holds);
    }
}
