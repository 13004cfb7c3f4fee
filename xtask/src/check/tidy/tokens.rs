//! Splits Rust source into tokens, as far as the rules need it.

/// A kind of token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An identifier, a keyword or a number.
    Word,
    /// `::`, or one character of punctuation.
    Sign,
    /// A string, a character or a lifetime.
    Literal,
    /// A comment with its marker.
    Comment,
}

/// One token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'text> {
    pub(crate) kind: Kind,
    pub(crate) text: &'text str,
    /// The line that the token begins on, counted from 1.
    pub(crate) line: usize,
}

/// Returns all tokens of a file, comments included.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let (mut rest, mut line, mut found) = (text, 1, Vec::new());
    while let Some(first) = rest.chars().next() {
        let (kind, length) = match first {
            first if first.is_whitespace() => (None, first.len_utf8()),
            _ => scan(rest, first),
        };
        let (token, behind) = rest.split_at(length.min(rest.len()));
        found.extend(kind.map(|kind| Token { kind, text: token, line }));
        line += token.matches('\n').count();
        rest = behind;
    }
    found
}

/// Returns the kind and the length of the token that a text begins with.
fn scan(text: &str, first: char) -> (Option<Kind>, usize) {
    let (kind, length) = if text.starts_with("//") {
        (Kind::Comment, text.find('\n').unwrap_or(text.len()))
    } else if text.starts_with("/*") {
        (Kind::Comment, block_comment(text))
    } else if let Some(length) = quoted(text) {
        (Kind::Literal, length)
    } else if is_word(first) {
        (Kind::Word, text.find(|letter| !is_word(letter)).unwrap_or(text.len()))
    } else if text.starts_with("::") {
        (Kind::Sign, 2)
    } else {
        (Kind::Sign, first.len_utf8())
    };
    (Some(kind), length)
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Returns the length of a block comment, which may hold other block comments.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(rest) = text.get(at..) {
        let step = rest.chars().next().map_or(0, char::len_utf8);
        match rest.get(..2) {
            Some("/*") => (depth, at) = (depth + 1, at + 2),
            Some("*/") if depth == 1 => return at + 2,
            Some("*/") => (depth, at) = (depth - 1, at + 2),
            _ if step == 0 => break,
            _ => at += step,
        }
    }
    text.len()
}

/// Returns the length of a string, a character or a lifetime at the start of a text.
fn quoted(text: &str) -> Option<usize> {
    let body = text.strip_prefix(['b', 'c']).unwrap_or(text);
    let prefix = text.len() - body.len();
    if let Some(raw) = body.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let inside = raw.get(hashes..)?.strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        let length = inside.find(&end).map_or(inside.len(), |at| at + end.len());
        return Some(prefix + 1 + hashes + 1 + length);
    }
    if body.starts_with('"') {
        return Some(prefix + escaped(body, '"'));
    }
    let inside = body.strip_prefix('\'')?;
    let mut letters = inside.chars();
    let first = letters.next()?;
    if first == '\\' || letters.next() == Some('\'') {
        return Some(prefix + escaped(body, '\''));
    }
    let name = inside.find(|letter| !is_word(letter)).unwrap_or(inside.len());
    Some(prefix + 1 + name)
}

/// Returns the length of a literal up to its closing quote, past escaped ones.
fn escaped(text: &str, quote: char) -> usize {
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' {
            letters.next();
        } else if letter == quote {
            return at + 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_falls_into_tokens() {
        for (text, expected) in [
            ("use a::b;", "use|a|::|b|;"),
            ("'a' 'b '\\'' 'long", "'a'|'b|'\\''|'long"),
            ("r#\"a\"b\"# r\"c\" \"d\\\"e\" b'x'", "r#\"a\"b\"#|r\"c\"|\"d\\\"e\"|b'x'"),
            ("a// b\nc", "a|// b|c"),
            ("/* a /* b */ c */d", "/* a /* b */ c */|d"),
            ("\"// é\" r#type", "\"// é\"|r|#|type"),
            ("\"open", "\"open"),
        ] {
            let found: Vec<&str> = tokens(text).iter().map(|token| token.text).collect();
            assert_eq!(found.join("|"), expected);
        }
    }

    #[test]
    fn lines_are_counted_through_literals() {
        let lines: Vec<usize> = tokens("a\n\"b\nc\" d").iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 2, 3]);
    }
}
