//! Interns words as numbers: each distinct word is kept once.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use memreport::MallocSizeOf;

/// The number of a word, from 0.
pub(crate) type TermId = u32;

/// All words of an index. The map and the list own the text of a word together; it is measured
/// once.
#[derive(Debug, Default, MallocSizeOf)]
pub(crate) struct Terms {
    numbers: HashMap<Arc<str>, TermId, Hashes>,
    words: Vec<Arc<str>>,
}

impl Terms {
    pub(crate) const fn new() -> Self {
        Terms { numbers: HashMap::with_hasher(Hashes::new()), words: Vec::new() }
    }

    /// Returns the number of this word, a new one for a new word.
    pub(crate) fn intern(&mut self, word: &str) -> TermId {
        match self.find(word) {
            Some(term) => term,
            None => self.add(Arc::from(word)),
        }
    }

    /// Interns a word that another index has interned, like [`intern`](Self::intern), and reuses
    /// its text.
    pub(crate) fn adopt(&mut self, word: Arc<str>) -> TermId {
        match self.find(&word) {
            Some(term) => term,
            None => self.add(word),
        }
    }

    pub(crate) fn find(&self, word: &str) -> Option<TermId> {
        self.numbers.get(word).copied()
    }

    /// Returns all words; the first has the number 0.
    pub(crate) fn words(&self) -> &[Arc<str>] {
        &self.words
    }

    pub(crate) fn into_words(self) -> Vec<Arc<str>> {
        self.words
    }

    fn add(&mut self, word: Arc<str>) -> TermId {
        let term = TermId::try_from(self.words.len()).expect("no folder has 2^32 distinct words");
        self.numbers.insert(Arc::clone(&word), term);
        self.words.push(word);
        term
    }
}

type Hashes = BuildHasherDefault<Fnv>;

/// The hash of Fowler, Noll and Vo, 1a: fast for short words.
#[derive(Debug)]
pub(crate) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_keeps_its_number() {
        let mut terms = Terms::default();
        assert_eq!(["a", "b", "a", "c"].map(|word| terms.intern(word)), [0, 1, 0, 2]);
        assert_eq!(terms.adopt(Arc::from("b")), 1);
        assert_eq!(terms.find("d"), None);
        assert_eq!(&*terms.words()[2], "c");
        dmd::assert_fully_reported!(terms);
    }

    #[test]
    fn the_hash_is_the_published_one() {
        let mut hash = Fnv::default();
        hash.write(b"foobar");
        assert_eq!(hash.finish(), 0x8594_4171_f739_67e8);
    }
}
