//! The words of a text: the parts of its identifiers, in lower case.
#![forbid(unsafe_code)]

/// The length of the longest word, in characters. Anything longer is data.
const LONGEST: usize = 40;

/// An iterator over the words of a text. `MemoryReport`, `memory_report` and `memory report` are
/// the same two words; numbers are skipped.
#[derive(Debug)]
pub(crate) struct Words<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Words<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        Words { text, at: 0 }
    }

    /// Puts the next word into `word`, and returns its byte offset in the text.
    pub(crate) fn next_into(&mut self, word: &mut String) -> Option<usize> {
        loop {
            let start = self.at + self.text[self.at..].find(char::is_alphanumeric)?;
            let (length, is_word) = part(&self.text[start..]);
            self.at = start + length;
            if is_word {
                word.clear();
                word.extend(self.text[start..self.at].chars().flat_map(char::to_lowercase));
                return Some(start);
            }
        }
    }
}

/// Returns the length in bytes of the identifier part that begins `text`, and whether it is a word.
fn part(text: &str) -> (usize, bool) {
    let mut characters = text.char_indices();
    let Some((_, first)) = characters.next() else { return (0, false) };
    if first.is_numeric() {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
        return (end.unwrap_or(text.len()), false);
    }
    let mut before = (0, first);
    let mut count = 1;
    for (at, character) in characters {
        if !character.is_alphanumeric() || character.is_uppercase() && !before.1.is_uppercase() {
            return (at, count <= LONGEST);
        }
        // `HTTPHeader`: the last capital begins the next part.
        if character.is_lowercase() && before.1.is_uppercase() && count > 1 {
            return (before.0, count - 1 <= LONGEST);
        }
        before = (at, character);
        count += 1;
    }
    (text.len(), count <= LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        let (mut words, mut word, mut all) = (Words::of(text), String::new(), Vec::new());
        while let Some(start) = words.next_into(&mut word) {
            all.push(format!("{word}@{start}"));
        }
        all.join(" ")
    }

    #[test]
    fn identifiers_are_taken_apart() {
        let table = [
            ("", ""),
            ("heap", "heap@0"),
            ("memory_report", "memory@0 report@7"),
            ("MemoryReport", "memory@0 report@6"),
            ("__HTTPHeader2Go", "http@2 header2@6 go@13"),
            ("MAX_SIZE: u64 = 0xFF_u8 + 12;", "max@0 size@4 u64@10"),
            ("Straße; École", "straße@0 école@9"),
            ("aB", "a@0 b@1"),
            ("ABc", "a@0 bc@1"),
        ];
        for (text, expected) in table {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn endless_words_are_data() {
        assert_eq!(words(&format!("a {} b", "x".repeat(41))), "a@0 b@44");
        assert_eq!(words(&"x".repeat(40)).len(), 42);
    }
}
