//! The worker threads: first they read files into the index, then they answer queries.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use memreport::{MallocSizeOf, Registration, Report, Reports};

use crate::answers::{Answer, Caches, answer};
use crate::documents::Packer;
use crate::folder;
use crate::index::{INDEX, Index, Places};
use crate::queue::Queue;
use crate::settings::{Limits, Settings};

/// The state that the workers and the main thread share.
#[derive(Debug, MallocSizeOf)]
pub(crate) struct Shop {
    root: PathBuf,
    limits: Limits,
    /// Files and queries for the workers, and their results.
    #[malloc_size_of(part = "queues")]
    pub(crate) files: Queue<PathBuf>,
    #[malloc_size_of(part = "queues")]
    pub(crate) queries: Queue<(usize, String)>,
    #[malloc_size_of(part = "queues")]
    pub(crate) news: Queue<News>,
    /// The state of each worker: its current file and its partial index.
    #[malloc_size_of(part)]
    benches: Box<[Mutex<Bench>]>,
    #[malloc_size_of(shared = elsewhere)]
    caches: Arc<Mutex<Caches>>,
}

/// A message from a worker.
#[derive(Debug, MallocSizeOf)]
pub(crate) enum News {
    /// The last file is read and the last partial index merged; this many files were not text.
    Built { skipped: usize },
    /// The answer to the query of this number.
    Answered(usize, Arc<Answer>),
    /// The error of the query of this number.
    Failed(usize, String),
}

/// The largest number of waiting files.
const WAITING: usize = 64;

impl Shop {
    pub(crate) fn new(settings: &Settings) -> Self {
        let limits = settings.limits;
        Shop {
            root: settings.arguments.folder.clone(),
            limits,
            files: Queue::new(WAITING),
            queries: Queue::new(usize::MAX),
            news: Queue::new(usize::MAX),
            benches: (0..limits.workers).map(|_| Mutex::default()).collect(),
            caches: Arc::new(Mutex::new(Caches::new(limits))),
        }
    }

    /// Reports its memory until the registrations are dropped.
    pub(crate) fn report(self: &Arc<Self>) -> [Registration; 3] {
        let caches = Arc::clone(&self.caches);
        let hits = move |reports: &mut Reports<'_>| {
            let Ok(caches) = caches.try_lock() else { return };
            let lookups = i64::from(caches.hits) + i64::from(caches.misses);
            let share = i64::from(caches.hits) * 10_000 / lookups.max(1);
            let description = "How often an answer or a text was in the cache.";
            reports.add(Report::percentage("fulltext-cache-hits", share, description));
        };
        let workers = "What the worker threads share.";
        let caches = "The caches' own block.";
        [
            memreport::report_value("explicit/fulltext/workers", self, workers),
            memreport::report_value("explicit/fulltext/cache", &self.caches, caches),
            memreport::register(hits),
        ]
    }

    /// Starts the workers. They end when the shop is closed.
    pub(crate) fn start<'s>(
        &'s self,
        scope: &'s thread::Scope<'s, '_>,
    ) -> io::Result<CloseOnDrop<'s>> {
        let close = CloseOnDrop(self);
        for (number, bench) in self.benches.iter().enumerate() {
            let thread = thread::Builder::new().name(format!("worker {number}"));
            thread.spawn_scoped(scope, || self.work(bench))?;
        }
        Ok(close)
    }

    fn work(&self, bench: &Mutex<Bench>) {
        // If this panics, the main thread must not wait for its message.
        let close = CloseOnDrop(self);
        let bench = || bench.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(path) = self.files.pop() {
            bench().read(&path, &self.root, self.limits);
        }
        let skipped = bench().finish();
        self.news.push(News::Built { skipped });
        while let Some((number, query)) = self.queries.pop() {
            let news = match answer(query, self.limits, &self.caches) {
                Ok(answer) => News::Answered(number, answer),
                Err(error) => News::Failed(number, error.to_string()),
            };
            self.news.push(news);
        }
        drop(close);
    }
}

/// A guard that closes the shop on drop.
#[derive(Debug)]
pub(crate) struct CloseOnDrop<'s>(&'s Shop);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.files.close();
        self.0.queries.close();
        self.0.news.close();
    }
}

/// The state of a worker.
#[derive(Debug, Default, MallocSizeOf)]
struct Bench {
    file: Vec<u8>,
    places: Places,
    /// Present only while the index is built.
    partial: Option<Index>,
    packer: Option<Packer>,
    skipped: usize,
}

impl Bench {
    /// Reads one file into the partial index.
    fn read(&mut self, path: &Path, root: &Path, limits: Limits) {
        self.file.clear();
        let largest = limits.largest_file as u64;
        let read = File::open(path).and_then(|file| file.take(largest).read_to_end(&mut self.file));
        let text = read.ok().and_then(|_| folder::text(&self.file));
        let Some(text) = text else {
            self.skipped += 1;
            return;
        };
        let partial = self.partial.get_or_insert_default();
        let packer = self.packer.get_or_insert_with(Packer::new);
        let below = path.strip_prefix(root).unwrap_or(path);
        partial.add(below, text, packer, &mut self.places);
        if partial.text_bytes() >= limits.merge_at {
            self.merge();
        }
    }

    fn merge(&mut self) {
        if let Some(partial) = self.partial.take() {
            INDEX.write().unwrap_or_else(PoisonError::into_inner).merge(partial);
        }
    }

    /// Merges the rest, frees the buffers for reading, and returns the number of files that were
    /// not text.
    fn finish(&mut self) -> usize {
        self.merge();
        self.packer = None;
        self.skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shop_reports_all_it_owns() -> io::Result<()> {
        let shop = Shop::new(&Settings::embedded()?);
        shop.queries.push((0, "heap".repeat(10)));
        shop.files.push(PathBuf::from("src/lib.rs"));
        let lines = [crate::answers::Line {
            path: "a".to_owned(),
            number: 1,
            text: "heap".to_owned(),
            score: 1.0,
        }];
        let answer = Answer { query: "heap".to_owned(), found: 1, lines: lines.into() };
        shop.news.push(News::Answered(0, Arc::new(answer)));
        // The caches are reported elsewhere, and stay alive here.
        let caches = Arc::clone(&shop.caches);
        dmd::assert_fully_reported!(shop);
        dmd::assert_fully_reported!(caches);
        Ok(())
    }

    #[test]
    fn a_bench_reports_all_it_owns_but_the_packer() -> io::Result<()> {
        let limits = Settings::embedded()?.limits;
        let mut bench = Bench::default();
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        bench.read(&here.join("Cargo.toml"), here, limits);
        bench.read(&here.join("nowhere"), here, limits);
        assert_eq!(
            (bench.partial.as_ref().map(|index| index.documents().len()), bench.skipped),
            (Some(1), 1)
        );
        bench.packer = None;
        dmd::assert_fully_reported!(bench);
        Ok(())
    }
}
