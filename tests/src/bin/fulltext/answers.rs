//! Answers queries with the best documents and their lines, and caches the answers.
#![forbid(unsafe_code)]

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memreport::MallocSizeOf;

use crate::index::{self, Index};
use crate::lru::Lru;
use crate::postings::DocumentId;
use crate::search::{Hit, search};
use crate::settings::Limits;
use crate::words::Words;

/// The results of one query.
#[derive(Debug, MallocSizeOf)]
pub(crate) struct Answer {
    pub(crate) query: String,
    /// The number of documents that match.
    pub(crate) found: usize,
    /// The best of them.
    pub(crate) lines: Box<[Line]>,
}

/// A line of a document.
#[derive(Debug, MallocSizeOf)]
pub(crate) struct Line {
    pub(crate) path: String,
    pub(crate) number: usize,
    pub(crate) text: String,
    pub(crate) score: f64,
}

/// The caches of earlier work.
#[derive(Debug, MallocSizeOf)]
pub(crate) struct Caches {
    /// Answers by query.
    #[malloc_size_of(part)]
    answers: Lru<String, Arc<Answer>>,
    /// Unpacked texts of documents.
    #[malloc_size_of(part)]
    texts: Lru<DocumentId, Arc<str>>,
    pub(crate) hits: u32,
    pub(crate) misses: u32,
}

impl Caches {
    pub(crate) fn new(limits: Limits) -> Self {
        Caches {
            answers: Lru::new(limits.answers),
            texts: Lru::new(limits.texts),
            hits: 0,
            misses: 0,
        }
    }

    fn count<V>(&mut self, known: Option<V>) -> Option<V> {
        match known {
            Some(_) => self.hits += 1,
            None => self.misses += 1,
        }
        known
    }
}

fn lock(caches: &Mutex<Caches>) -> MutexGuard<'_, Caches> {
    caches.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers a query from the cache or from the index.
pub(crate) fn answer(
    query: String,
    limits: Limits,
    caches: &Mutex<Caches>,
) -> io::Result<Arc<Answer>> {
    let mut cached = lock(caches);
    let known = cached.answers.get(&query).cloned();
    if let Some(known) = cached.count(known) {
        return Ok(known);
    }
    drop(cached);
    let index = index::read();
    let hits = search(&index, &query, limits.ranking);
    let lines: io::Result<Box<[Line]>> =
        hits.iter().take(limits.results).map(|hit| line(&index, *hit, caches)).collect();
    let answer = Arc::new(Answer { query, found: hits.len(), lines: lines? });
    let text: usize = answer.lines.iter().map(|line| line.path.len() + line.text.len()).sum();
    let weight = size_of::<Answer>() + answer.query.len() + text;
    lock(caches).answers.insert(answer.query.clone(), Arc::clone(&answer), weight);
    Ok(answer)
}

/// Returns the line of the hit's document that contains its position.
fn line(index: &Index, hit: Hit, caches: &Mutex<Caches>) -> io::Result<Line> {
    let document = index.document(hit.document);
    let text = text(index, hit.document, caches)?;
    let (mut words, mut word) = (Words::of(&text), String::new());
    let offsets = (0..=hit.position).map_while(|_| words.next_into(&mut word));
    let (number, begin) = document.line(offsets.last().unwrap_or(0));
    Ok(Line {
        path: document.path().display().to_string(),
        number,
        text: text[begin..].lines().next().unwrap_or_default().trim().to_owned(),
        score: hit.score,
    })
}

fn text(index: &Index, id: DocumentId, caches: &Mutex<Caches>) -> io::Result<Arc<str>> {
    let mut cached = lock(caches);
    let known = cached.texts.get(&id).cloned();
    if let Some(known) = cached.count(known) {
        return Ok(known);
    }
    // Other threads may use the cache meanwhile.
    drop(cached);
    let text: Arc<str> = index.document(id).text()?.into();
    lock(caches).texts.insert(id, Arc::clone(&text), text.len());
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn the_caches_report_all_they_own() {
        let limits = Settings::embedded().expect("the file is tested").limits;
        let caches = Mutex::new(Caches::new(limits));
        let index = index::of_texts(&["fn main() {\n    heap();\n}\n"]);
        let hit = Hit { document: 0, score: 1.5, position: 2 };
        let line = line(&index, hit, &caches).expect("the text was packed here");
        assert_eq!((line.number, line.text.as_str(), line.path.as_str()), (2, "heap();", "0.rs"));
        let query = "heap".to_owned();
        let answer = Arc::new(Answer { query: query.clone(), found: 1, lines: [line].into() });
        let mut cached = lock(&caches);
        cached.answers.insert(query, answer, 1);
        assert_eq!((cached.hits, cached.misses), (0, 1));
        drop(cached);
        dmd::assert_fully_reported!(caches);
    }
}
