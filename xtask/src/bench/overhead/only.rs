//! The words behind `--only`, and which of them a figure has in its name.

use std::cell::Cell;

use super::variants::WORKS;
use crate::failure::Failure;

/// The figures that are wanted: without words all, else those with one of them in their names.
pub(super) struct Only<'a> {
    words: Option<Vec<Word<'a>>>,
}

struct Word<'a> {
    text: &'a str,
    is_met: Cell<bool>,
}

impl<'a> Only<'a> {
    /// Reads the words, which `|` separates.
    pub(super) fn new(words: Option<&'a str>) -> Self {
        let word = |text| Word { text, is_met: Cell::new(false) };
        Only { words: words.map(|words| words.split('|').map(word).collect()) }
    }

    /// Returns whether the figure of this name is wanted, and notes which words it has, for
    /// [`check`](Self::check).
    pub(super) fn wants(&self, name: &str) -> bool {
        let Some(words) = &self.words else { return true };
        let mut is_wanted = false;
        for word in words.iter().filter(|word| name.contains(word.text)) {
            word.is_met.set(true);
            is_wanted = true;
        }
        is_wanted
    }

    /// Returns whether one of the words names a work: then figures that are not times are left out.
    pub(super) fn names_a_work(&self) -> bool {
        let mut words = self.words.iter().flatten();
        words.any(|word| WORKS.iter().any(|work| word.text.contains(work.name)))
    }

    /// Returns an error if no figure had one of the words in its name.
    pub(super) fn check(&self, titles: &[&str]) -> Result<(), Failure> {
        let words = self.words.iter().flatten().filter(|word| !word.is_met.get());
        let unmet: Vec<String> = words.map(|word| format!("\"{}\"", word.text)).collect();
        if unmet.is_empty() {
            return Ok(());
        }
        let works = WORKS.iter().map(|work| work.name);
        let sections: Vec<&str> = works.chain(titles.iter().copied()).collect();
        Err(format!(
            "no figure has {} in its name. A name is a section, a comma and a row, and the sections are: {}",
            unmet.join(" or "),
            sections.join("; ")
        )
        .into())
    }
}

#[cfg(test)]
mod tests {
    use super::Only;

    #[test]
    fn without_words_all_is_wanted() {
        let only = Only::new(None);
        assert!(only.wants("json, asleep"));
        assert!(only.check(&[]).is_ok());
    }

    #[test]
    fn a_word_that_no_figure_has_is_an_error() {
        let only = Only::new(Some("json|JSON|asleeep"));
        assert!(only.wants("json, asleep"));
        assert!(!only.wants("maps, asleep"));
        let error = only.check(&["dump"]).unwrap_err().to_string();
        assert!(error.starts_with("no figure has \"JSON\" or \"asleeep\" in its name"), "{error}");
        assert!(error.ends_with("fulltext; maps; dump"), "{error}");
    }

    #[test]
    fn a_work_leaves_out_what_is_not_a_time() {
        assert!(Only::new(Some("maps, asleep")).names_a_work());
        assert!(!Only::new(Some("asleep")).names_a_work());
    }
}
