//! Changes to the text of files, by places.

/// An addition to a text, or a replacement of a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The number of the file.
    pub(crate) file: usize,
    /// The byte before which text is added.
    pub(crate) at: usize,
    /// The number of bytes that it replaces.
    pub(crate) removed: usize,
    pub(crate) added: String,
    /// The number of the change that it is a part of.
    pub(crate) change: usize,
}

/// A text with changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edited {
    pub(crate) text: String,
    /// The places of the additions in the new text, sorted.
    pieces: Vec<Piece>,
}

/// An addition in the new text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    start: usize,
    length: usize,
    /// The byte in the old text behind it.
    behind: usize,
    change: usize,
}

/// A place in a text before its changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OldPlace {
    /// In text that was there.
    Old(usize),
    /// In text that this change added.
    Added(usize),
}

/// Applies the edits of one file. Where several begin at one byte, the first one comes first.
pub(crate) fn apply(text: &str, mut edits: Vec<Edit>) -> Edited {
    edits.sort_by_key(|edit| edit.at);
    let (mut new, mut pieces, mut done) = (String::with_capacity(text.len()), Vec::new(), 0);
    for edit in edits {
        let Some(old) = text.get(done..edit.at.max(done)) else { continue };
        new.push_str(old);
        done = edit.at.max(done) + edit.removed;
        let (start, length) = (new.len(), edit.added.len());
        pieces.push(Piece { start, length, behind: done, change: edit.change });
        new.push_str(&edit.added);
    }
    new.push_str(text.get(done..).unwrap_or_default());
    Edited { text: new, pieces }
}

impl Edited {
    /// Makes a text that takes the place of another one. All of it is of all these changes.
    pub(crate) fn replaced(old: &str, new: &str, changes: Vec<usize>) -> Self {
        let (length, behind) = (new.len(), old.len());
        let pieces = changes.into_iter().map(|change| Piece { start: 0, length, behind, change });
        Self { text: new.to_owned(), pieces: pieces.collect() }
    }

    /// Returns the place in the old text of a byte in the new one.
    pub(crate) fn old_place(&self, at: usize) -> OldPlace {
        let before = self.pieces.partition_point(|piece| piece.start <= at);
        match before.checked_sub(1).map(|number| self.pieces[number]) {
            None => OldPlace::Old(at),
            Some(piece) if at < piece.start + piece.length => OldPlace::Added(piece.change),
            Some(piece) => OldPlace::Old(piece.behind + (at - piece.start - piece.length)),
        }
    }

    /// Returns the changes in a range of lines of the new text, from 0, each once.
    pub(crate) fn changes_in(&self, lines: std::ops::Range<usize>) -> Vec<usize> {
        let line = |at: usize| self.text.as_bytes()[..at].iter().filter(|b| **b == b'\n').count();
        let mut found: Vec<usize> = Vec::new();
        for piece in &self.pieces {
            let (first, end) = (line(piece.start), line(piece.start + piece.length));
            if first < lines.end && end >= lines.start && !found.contains(&piece.change) {
                found.push(piece.change);
            }
        }
        found
    }
}

/// Returns an edit that adds an attribute before a place: on a line of its own if the place begins
/// one, else in the same line.
pub(crate) fn attribute(
    text: &str,
    (file, at): (usize, usize),
    attribute: &str,
    change: usize,
) -> Edit {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let indent = &text[line..at];
    let added = if indent.trim().is_empty() {
        format!("{attribute}{}{indent}", ending(text))
    } else {
        format!("{attribute} ")
    };
    Edit { file, at, removed: 0, added, change }
}

/// Returns an edit that removes an attribute, with its line if nothing else is in it.
pub(crate) fn without(
    text: &str,
    file: usize,
    range: std::ops::Range<usize>,
    change: usize,
) -> Edit {
    let line = text[..range.start].rfind('\n').map_or(0, |end| end + 1);
    let rest = text[range.end..].find('\n').map_or(text.len(), |end| range.end + end + 1);
    let is_alone =
        text[line..range.start].trim().is_empty() && text[range.end..rest].trim().is_empty();
    let end = if is_alone { rest } else { range.end };
    let start = if is_alone { line } else { range.start };
    // In the same line, the space behind it goes too.
    let spaces = text[end..].len() - text[end..].trim_start_matches(' ').len();
    let end = if is_alone { end } else { end + spaces };
    Edit { file, at: start, removed: end - start, added: String::new(), change }
}

/// Returns an edit that adds lines behind the line that a place is in, with empty lines around them
/// if they are items.
pub(crate) fn lines_behind(
    text: &str,
    (file, start, end): (usize, usize, usize),
    (lines, are_items): (&[String], bool),
    change: usize,
) -> Edit {
    let ending = ending(text);
    let line = text[..start].rfind('\n').map_or(0, |end| end + 1);
    let indent: String = text[line..start].chars().take_while(|c| c.is_whitespace()).collect();
    let rest = text[end..].find('\n');
    let is_alone = rest.is_some_and(|length| {
        text[end..end + length].trim().is_empty()
            || text[end..end + length].trim().starts_with("//")
    });
    let at = match rest {
        Some(length) if is_alone => end + length,
        _ => end,
    };
    let at = if text[..at].ends_with('\r') { at - 1 } else { at };
    let mut added = String::new();
    let gap = are_items.then_some("");
    for line in gap.into_iter().chain(lines.iter().map(String::as_str)) {
        added.push_str(ending);
        if !line.is_empty() {
            added.push_str(&indent);
            added.push_str(line);
        }
    }
    let next = text[at..].trim_start_matches('\r').strip_prefix('\n').unwrap_or_default();
    let next = next.lines().next().unwrap_or_default().trim();
    if are_items && !next.is_empty() && next != "}" {
        added.push_str(ending);
    }
    Edit { file, at, removed: 0, added, change }
}

fn ending(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_have_their_own_line_where_the_item_has() {
        let text = "mod a {\n    pub struct Cart(Vec<u8>);\n}\n";
        let at = |word: &str| (0, text.find(word).unwrap());
        let edits = vec![
            attribute(text, at("pub"), "#[derive(A)]", 0),
            attribute(text, at("Vec"), "#[b]", 1),
        ];
        let edited = apply(text, edits);
        assert_eq!(
            edited.text,
            "mod a {\n    #[derive(A)]\n    pub struct Cart(#[b] Vec<u8>);\n}\n"
        );
        let place = |word: &str| edited.old_place(edited.text.find(word).unwrap());
        assert_eq!(place("mod"), OldPlace::Old(0));
        assert_eq!(place("derive"), OldPlace::Added(0));
        assert_eq!(place("pub"), OldPlace::Old(text.find("pub").unwrap()));
        assert_eq!(place("#[b]"), OldPlace::Added(1));
        assert_eq!(place("Vec"), OldPlace::Old(text.find("Vec").unwrap()));
        assert_eq!(edited.changes_in(0..3), [0, 1]);
        assert_eq!(edited.changes_in(2..3), [0, 1]);
        assert!(edited.changes_in(3..4).is_empty());
    }

    #[test]
    fn a_removed_attribute_takes_its_line_with_it() {
        for (text, expected) in [
            ("struct A {\n    #[b]\n    c: u8,\n}\n", "struct A {\n    c: u8,\n}\n"),
            ("struct A(#[b] u8);\n", "struct A(u8);\n"),
        ] {
            let start = text.find("#[b]").unwrap();
            let edit = without(text, 0, start..start + 4, 0);
            assert_eq!(apply(text, vec![edit]).text, expected);
        }
    }

    #[test]
    fn lines_are_added_behind_the_comment_of_an_item() {
        for (text, expected) in [
            (
                "static A: u8 = 1; // one\nfn f() {}\n",
                "static A: u8 = 1; // one\n\nR!();\n\nfn f() {}\n",
            ),
            (
                "static A: u8 = 1;\r\n\r\nfn f() {}\r\n",
                "static A: u8 = 1;\r\n\r\nR!();\r\n\r\nfn f() {}\r\n",
            ),
            (
                "mod m {\n    static A: u8 = 1;\n}\n",
                "mod m {\n    static A: u8 = 1;\n\n    R!();\n}\n",
            ),
            ("static A: u8 = 1;", "static A: u8 = 1;\n\nR!();"),
        ] {
            let start = text.find("static").unwrap();
            let end = text.find("1;").unwrap() + 2;
            let edit = lines_behind(text, (0, start, end), (&["R!();".to_owned()], true), 0);
            assert_eq!(apply(text, vec![edit]).text, expected);
        }
    }
}
