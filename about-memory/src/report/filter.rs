//! Filters reports by path.

use regress::Regex;

/// A condition on paths as in the file: with backslashes for the slashes of URLs.
#[derive(Clone, Debug, Default)]
pub enum Filter {
    /// Every path.
    #[default]
    All,
    /// Paths that contain this text, case-sensitive.
    Text(String),
    /// Paths that this JavaScript regular expression matches.
    Regex(Box<Regex>),
}

impl Filter {
    /// Makes a filter from text as typed into Firefox's page. Empty text matches every path.
    pub fn text(text: &str) -> Self {
        if text.is_empty() { Filter::All } else { Filter::Text(text.to_owned()) }
    }

    /// Makes a filter from a regular expression as typed into Firefox's page. Empty text matches
    /// every path.
    ///
    /// # Errors
    /// The pattern is not a regular expression of JavaScript. Firefox then shows no reports.
    pub fn regex(pattern: &str) -> Result<Self, String> {
        if pattern.is_empty() {
            return Ok(Filter::All);
        }
        Regex::new(&without_code_points(pattern))
            .map(|regex| Filter::Regex(Box::new(regex)))
            .map_err(|error| format!("`{pattern}` is no regular expression: {error}"))
    }

    /// Returns whether every path matches.
    pub fn is_all(&self) -> bool {
        matches!(self, Filter::All)
    }

    /// Returns whether a path matches.
    pub fn matches(&self, path: &str) -> bool {
        match self {
            Filter::All => true,
            Filter::Text(text) => path.contains(text.as_str()),
            // Without the flag `u`, JavaScript matches UTF-16 code units.
            Filter::Regex(regex) => {
                let units: Vec<u16> = path.encode_utf16().collect();
                regex.find_from_ucs2(&units, 0).next().is_some()
            }
        }
    }
}

/// Rewrites `\u{6a}`: without the flag `u`, JavaScript reads it as the letter u and `{6a}`, but the
/// crate reads a character.
fn without_code_points(pattern: &str) -> String {
    let mut plain = String::with_capacity(pattern.len());
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('\\', Some('u')) => {
                rest.next();
                plain.push_str(if rest.peek() == Some(&'{') { "u" } else { "\\u" });
            }
            ('\\', Some(&escaped)) => {
                rest.next();
                plain.extend(['\\', escaped]);
            }
            _ => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_found_as_it_is() {
        for (filter, path, matches) in [
            ("", "a/b", true),
            ("b", "a/b", true),
            ("B", "a/b", false),
            ("a.b", "a/b", false),
            ("http:\\\\x", "a/http:\\\\x/b", true),
            ("http://x", "a/http:\\\\x/b", false),
        ] {
            assert_eq!(Filter::text(filter).matches(path), matches, "{filter} in {path}");
        }
    }

    #[test]
    fn expressions_are_javascripts() {
        for (pattern, path, matches) in [
            ("", "a/b", true),
            ("a.b", "a/b", true),
            ("^b", "a/b", false),
            ("B$", "a/b", false),
            (r"(\w)\1", "a/bb", true),
            (r"^(?!explicit)", "explicit/a", false),
            ("^.$", "😀", false),
            ("^..$", "😀", true),
            (r"a{", "a{", true),
            (r"^\u{2}$", "uu", true),
            (r"\u{6a}", "j", false),
            (r"^\\u{2}$", "\\uu", true),
            (r"\u006a", "j", true),
        ] {
            let filter = Filter::regex(pattern).expect(pattern);
            assert_eq!(filter.matches(path), matches, "{pattern} in {path}");
        }
    }

    #[test]
    fn an_invalid_expression_is_named() {
        let error = Filter::regex("(").expect_err("not an expression");
        assert!(error.starts_with("`(` is no regular expression: "), "{error}");
    }
}
