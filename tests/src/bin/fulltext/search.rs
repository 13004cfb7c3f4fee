//! Finds the documents that match a query, and ranks them by Okapi BM25.
#![forbid(unsafe_code)]

use std::collections::HashMap;

use memreport::MallocSizeOf;

use crate::index::Index;
use crate::postings::DocumentId;
use crate::words::Words;

/// The constants of BM25.
#[derive(Clone, Copy, Debug, MallocSizeOf)]
pub(crate) struct Ranking {
    /// The saturation of repeated occurrences.
    pub(crate) k1: f64,
    /// The penalty of long documents, from 0 to 1.
    pub(crate) b: f64,
}

impl Ranking {
    /// Returns the contribution to a score of `frequency` occurrences in a document of `length`
    /// words, if `matching` of all `documents` have any.
    ///
    /// From Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009; the 1 keeps
    /// common words above 0.
    fn score(
        self,
        frequency: f64,
        length: f64,
        average_length: f64,
        (matching, documents): (f64, f64),
    ) -> f64 {
        let rarity = (1.0 + (documents - matching + 0.5) / (matching + 0.5)).ln();
        let held_back = self.k1 * (1.0 - self.b + self.b * length / average_length);
        rarity * frequency * (self.k1 + 1.0) / (frequency + held_back)
    }
}

/// A matching document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hit {
    pub(crate) document: DocumentId,
    pub(crate) score: f64,
    /// The position of a word of the query.
    pub(crate) position: u32,
}

/// Returns the documents that contain all phrases of the query, the best first.
pub(crate) fn search(index: &Index, query: &str, ranking: Ranking) -> Vec<Hit> {
    let documents = index.documents().len() as f64;
    let average_length = index.words() as f64 / documents.max(1.0);
    let mut hits: Option<HashMap<DocumentId, Hit>> = None;
    for phrase in phrases(query) {
        let matches = occurrences(index, &phrase);
        let found = (matches.len() as f64, documents);
        let mut next = HashMap::with_capacity(matches.len());
        for (document, positions) in matches {
            let before = match &hits {
                None => 0.0,
                Some(hits) => match hits.get(&document) {
                    Some(hit) => hit.score,
                    None => continue,
                },
            };
            let length = f64::from(index.document(document).words());
            let frequency = positions.len() as f64;
            let score = before + ranking.score(frequency, length, average_length, found);
            next.insert(document, Hit { document, score, position: positions[0] });
        }
        hits = Some(next);
    }
    let mut hits: Vec<Hit> = hits.unwrap_or_default().into_values().collect();
    let path = |hit: &Hit| index.document(hit.document).path();
    // The numbers of documents depend on the timing of the workers; their paths do not.
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| path(a).cmp(path(b))));
    hits
}

/// Splits a query into phrases: quoted words, and identifiers of several words, must match in
/// sequence.
fn phrases(query: &str) -> Vec<Vec<String>> {
    let parts = query.split('"').enumerate().flat_map(|(number, part)| {
        let quoted = number % 2 == 1;
        let pieces: Vec<&str> = if quoted { vec![part] } else { part.split_whitespace().collect() };
        pieces
    });
    let words_of = |part| {
        let (mut words, mut word, mut all) = (Words::of(part), String::new(), Vec::new());
        while words.next_into(&mut word).is_some() {
            all.push(word.clone());
        }
        all
    };
    parts.map(words_of).filter(|words| !words.is_empty()).collect()
}

/// Returns each document with the phrase, and the positions in it.
fn occurrences(index: &Index, phrase: &[String]) -> Vec<(DocumentId, Vec<u32>)> {
    let mut found: Option<Vec<(DocumentId, Vec<u32>)>> = None;
    for (word, distance) in phrase.iter().zip(0..) {
        let Some(term) = index.terms().find(word) else { return Vec::new() };
        let list = index.postings(term);
        let (mut postings, mut positions) = (list.read(), Vec::new());
        let most = found.as_ref().map_or(list.documents() as usize, Vec::len);
        let mut next = Vec::with_capacity(most);
        let mut before = found.map(Vec::into_iter).map(Iterator::peekable);
        while let Some(document) = postings.next_into(&mut positions) {
            let Some(before) = &mut before else {
                next.push((document, positions.clone()));
                continue;
            };
            while before.next_if(|(earlier, _)| *earlier < document).is_some() {}
            if let Some((_, mut starts)) = before.next_if(|(same, _)| *same == document) {
                starts.retain(|start| positions.binary_search(&(start + distance)).is_ok());
                if !starts.is_empty() {
                    next.push((document, starts));
                }
            }
        }
        found = Some(next);
    }
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::of_texts;

    const RANKING: Ranking = Ranking { k1: 1.2, b: 0.75 };

    #[test]
    fn a_query_is_phrases() {
        let table = [
            ("", "[]"),
            ("heap Block", r#"[["heap"], ["block"]]"#),
            (r#"a "memory report" b"#, r#"[["a"], ["memory", "report"], ["b"]]"#),
            ("HashMap -", r#"[["hash", "map"]]"#),
            (r#""never closed"#, r#"[["never", "closed"]]"#),
        ];
        for (query, expected) in table {
            assert_eq!(format!("{:?}", phrases(query)), expected, "{query}");
        }
    }

    #[test]
    fn what_a_query_matches_is_found() {
        let index = of_texts(&["a hash map", "HashMap and hash", "map of a hash", "", "hash"]);
        let found = |query| {
            let mut found: Vec<_> =
                search(&index, query, RANKING).iter().map(|hit| hit.document).collect();
            found.sort_unstable();
            found
        };
        assert_eq!(found("hash"), [0, 1, 2, 4]);
        assert_eq!(found("hash map"), [0, 1, 2]);
        assert_eq!(found("\"hash map\""), [0, 1]);
        assert_eq!(found("HashMap a"), [0]);
        assert!(["stack", "hash stack", ""].into_iter().all(|query| found(query).is_empty()));
    }

    #[test]
    fn more_occurrences_in_shorter_texts_rank_higher() {
        let index = of_texts(&["heap a b c d e f", "heap heap", "heap a", "stack", "queue"]);
        let found: Vec<_> =
            search(&index, "heap", RANKING).iter().map(|hit| hit.document).collect();
        assert_eq!(found, [1, 2, 0]);
    }

    #[test]
    fn the_score_is_the_published_one() {
        // ln(1 + 8.5 / 2.5) * 3 * 2.2 / (3 + 1.2 * (0.25 + 0.75 * 100 / 50))
        let score = RANKING.score(3.0, 100.0, 50.0, (2.0, 10.0));
        assert!((score - 1.917_37).abs() < 1e-4, "{score}");
    }
}
