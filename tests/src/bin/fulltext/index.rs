//! The index: words, their positions, and the documents. Workers build partial indexes and merge
//! them.
#![forbid(unsafe_code)]

use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use memreport::{MallocSizeOf, Report};

use crate::documents::{Document, Packer};
use crate::postings::{DocumentId, PostingList};
use crate::terms::{TermId, Terms};
use crate::words::Words;

/// The index of the whole folder.
pub(crate) static INDEX: RwLock<Index> = RwLock::new(Index::new());

memreport::reporter!("explicit/fulltext", INDEX, "What the index has beside its parts.");
memreport::reporter!(|reports| {
    let Ok(index) = INDEX.try_read() else { return };
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let documents = count(index.documents.len());
    reports.add(Report::count("fulltext-documents", documents, "Files in the index."));
    let terms = count(index.terms.words().len());
    reports.add(Report::count("fulltext-terms", terms, "Distinct words in the index."));
});

/// Locks the index for reading.
pub(crate) fn read() -> RwLockReadGuard<'static, Index> {
    INDEX.read().unwrap_or_else(PoisonError::into_inner)
}

/// Completes the index: no more documents are added.
pub(crate) fn complete() {
    INDEX.write().unwrap_or_else(PoisonError::into_inner).complete();
}

/// A map from words to their documents and positions.
#[derive(Debug, Default, MallocSizeOf)]
pub(crate) struct Index {
    /// Every distinct word with its number.
    #[malloc_size_of(part)]
    terms: Terms,
    /// For each word, the documents and the positions in them.
    #[malloc_size_of(part)]
    postings: Vec<PostingList>,
    /// Paths, line tables and packed texts of all files.
    #[malloc_size_of(part)]
    documents: Vec<Document>,
    /// The bytes of all texts.
    text_bytes: u64,
    words: u64,
}

/// The words of one document with their positions. The buffer is reused for the next document.
pub(crate) type Places = Vec<(TermId, u32)>;

impl Index {
    pub(crate) const fn new() -> Self {
        Index {
            terms: Terms::new(),
            postings: Vec::new(),
            documents: Vec::new(),
            text_bytes: 0,
            words: 0,
        }
    }

    /// Adds a document.
    pub(crate) fn add(
        &mut self,
        path: &Path,
        text: &str,
        packer: &mut Packer,
        places: &mut Places,
    ) {
        let id = document_id(self.documents.len());
        let (mut words, mut word, mut position) = (Words::of(text), String::new(), 0);
        places.clear();
        while words.next_into(&mut word).is_some() {
            places.push((self.terms.intern(&word), position));
            position += 1;
        }
        places.sort_unstable();
        self.postings.resize_with(self.terms.words().len(), PostingList::default);
        for of_term in places.chunk_by(|a, b| a.0 == b.0) {
            let positions = of_term.iter().map(|place| place.1);
            self.postings[of_term[0].0 as usize].append(id, positions);
        }
        self.documents.push(Document::new(path, text, position, packer));
        self.text_bytes += text.len() as u64;
        self.words += u64::from(position);
    }

    /// Moves all documents of a partial index into this one.
    pub(crate) fn merge(&mut self, partial: Index) {
        let base = document_id(self.documents.len());
        for (word, list) in partial.terms.into_words().into_iter().zip(partial.postings) {
            let term = self.terms.adopt(word) as usize;
            if term == self.postings.len() {
                self.postings.push(PostingList::default());
            }
            self.postings[term].append_list(base, &list);
        }
        self.documents.extend(partial.documents);
        self.text_bytes += partial.text_bytes;
        self.words += partial.words;
    }

    /// Frees spare capacity.
    fn complete(&mut self) {
        self.postings.iter_mut().for_each(PostingList::shrink);
        self.postings.shrink_to_fit();
        self.documents.shrink_to_fit();
    }

    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }

    pub(crate) fn postings(&self, term: TermId) -> &PostingList {
        &self.postings[term as usize]
    }

    pub(crate) fn documents(&self) -> &Vec<Document> {
        &self.documents
    }

    pub(crate) fn document(&self, id: DocumentId) -> &Document {
        &self.documents[id as usize]
    }

    pub(crate) fn text_bytes(&self) -> u64 {
        self.text_bytes
    }

    pub(crate) fn words(&self) -> u64 {
        self.words
    }
}

fn document_id(number: usize) -> DocumentId {
    DocumentId::try_from(number).expect("no folder has 2^32 files")
}

#[cfg(test)]
pub(crate) fn of_texts(texts: &[&str]) -> Index {
    let (mut packer, mut places) = (Packer::new(), Places::new());
    let mut whole = Index::new();
    for (texts, part) in texts.chunks(2).zip(0..) {
        let mut partial = Index::new();
        for (text, number) in texts.iter().zip(2 * part..) {
            partial.add(Path::new(&format!("{number}.rs")), text, &mut packer, &mut places);
        }
        whole.merge(partial);
    }
    whole.complete();
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_indexes_add_up() {
        let index = of_texts(&["heap of blocks", "a block", "heap, heap", ""]);
        let documents =
            |word: &str| index.terms.find(word).map_or(0, |term| index.postings(term).documents());
        assert_eq!(["heap", "blocks", "block", "stack"].map(documents), [2, 1, 1, 0]);
        assert_eq!(index.document(2).path(), Path::new("2.rs"));
        assert_eq!((index.words(), index.text_bytes()), (7, 31));
        dmd::assert_fully_reported!(index);
    }
}
