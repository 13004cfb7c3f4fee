//! The positions of a word: documents and offsets, as differences in variable-length bytes.
#![forbid(unsafe_code)]

use memreport::MallocSizeOf;

use crate::varint;

/// The number of a document, from 0.
pub(crate) type DocumentId = u32;

/// The positions of one word: for each document its distance from the last, the number of
/// occurrences, and their positions.
#[derive(Debug, Default, MallocSizeOf)]
pub(crate) struct PostingList {
    bytes: Vec<u8>,
    documents: u32,
    last: DocumentId,
}

impl PostingList {
    /// Appends the ascending positions in a document, which comes after all others.
    pub(crate) fn append(
        &mut self,
        document: DocumentId,
        positions: impl ExactSizeIterator<Item = u32>,
    ) {
        let count = u32::try_from(positions.len()).expect("positions are 32 bits wide");
        varint::write(&mut self.bytes, document - self.last);
        varint::write(&mut self.bytes, count);
        varint::write_ascending(&mut self.bytes, positions);
        self.documents += 1;
        self.last = document;
    }

    /// Appends a list whose documents were counted from `base`: only its first distance changes.
    pub(crate) fn append_list(&mut self, base: DocumentId, other: &PostingList) {
        let mut bytes = &*other.bytes;
        let Some(first) = varint::read(&mut bytes) else { return };
        varint::write(&mut self.bytes, base + first - self.last);
        self.bytes.extend_from_slice(bytes);
        self.documents += other.documents;
        self.last = base + other.last;
    }

    /// Returns the number of documents that contain the word.
    pub(crate) fn documents(&self) -> u32 {
        self.documents
    }

    /// Frees spare capacity.
    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
    }

    pub(crate) fn read(&self) -> Postings<'_> {
        Postings { bytes: &self.bytes, last: 0 }
    }
}

/// A cursor over a list.
#[derive(Debug)]
pub(crate) struct Postings<'l> {
    bytes: &'l [u8],
    last: DocumentId,
}

impl Postings<'_> {
    /// Returns the next document and puts its positions into `positions`.
    pub(crate) fn next_into(&mut self, positions: &mut Vec<u32>) -> Option<DocumentId> {
        positions.clear();
        self.last += varint::read(&mut self.bytes)?;
        let count = varint::read(&mut self.bytes)?;
        varint::read_ascending(&mut self.bytes, count, positions)?;
        Some(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(list: &PostingList) -> Vec<(DocumentId, Vec<u32>)> {
        let (mut postings, mut positions, mut all) = (list.read(), Vec::new(), Vec::new());
        while let Some(document) = postings.next_into(&mut positions) {
            all.push((document, positions.clone()));
        }
        all
    }

    fn list(documents: &[(DocumentId, &[u32])]) -> PostingList {
        let mut list = PostingList::default();
        for (document, positions) in documents {
            list.append(*document, positions.iter().copied());
        }
        list
    }

    #[test]
    fn what_is_appended_is_read() {
        let list = list(&[(0, &[5]), (7, &[0, 300]), (1000, &[1, 2, 3])]);
        assert_eq!(all(&list), [(0, vec![5]), (7, vec![0, 300]), (1000, vec![1, 2, 3])]);
        assert_eq!(list.documents(), 3);
        dmd::assert_fully_reported!(list);
    }

    #[test]
    fn lists_are_appended_with_their_documents_moved() {
        let mut whole = list(&[(2, &[1])]);
        whole.append_list(10, &list(&[(0, &[4]), (200, &[9])]));
        whole.append_list(300, &PostingList::default());
        whole.append_list(300, &list(&[(1, &[0])]));
        assert_eq!(all(&whole), [(2, vec![1]), (10, vec![4]), (210, vec![9]), (301, vec![0])]);
        assert_eq!(whole.documents(), 4);
    }
}
