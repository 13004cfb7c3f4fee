//! Reads the figures of one process that explain its resident memory.

use super::blocks::Blocks;
use crate::report::notes;
use memreport::snapshot::read::{Entry, Header, NumericEntry, Sink};
use std::collections::BTreeMap;
use std::error::Error;

/// The kinds and units of reports, as in files.
const NON_HEAP: f64 = 0.0;
const HEAP: f64 = 1.0;
const BYTES: f64 = 0.0;
const COUNT: f64 = 1.0;

/// The largest figure, in either direction: some of them can be added up and compared.
const MOST: i64 = 1 << 58;

/// Adds up any number of figures. Those of a damaged file may add up to any number.
pub(crate) fn add_up<'a>(figures: impl IntoIterator<Item = &'a i64>) -> i64 {
    let sum: i128 = figures.into_iter().map(|figure| i128::from(*figure)).sum();
    i64::try_from(sum.clamp(-i128::from(MOST), i128::from(MOST))).unwrap_or(MOST)
}

/// The tolerance for the start time of a process, in milliseconds: each file measures it again.
pub(crate) const START_TOLERANCE_MS: u64 = 2000;

/// The figures of one process in one snapshot, in bytes.
#[derive(Clone, Debug, Default)]
pub struct ProcessSnapshot {
    /// The process, by the name in its reports or in the file.
    pub process: String,
    /// The pid, and the start time in milliseconds since 1970, if known.
    pub identity: (Option<u64>, Option<u64>),
    /// The time of the snapshot, in milliseconds since 1970.
    pub time_ms: Option<u64>,
    /// The name of the program's allocator.
    pub allocator: Option<String>,
    /// The number of threads; 0 if the file has none.
    pub threads: i64,
    /// The notes of the snapshot about its own collection, as sentences.
    pub notes: Vec<String>,
    /// True if reporters were missed, whose bytes are in `heap-unclassified-or-missed`.
    pub is_incomplete: bool,
    /// The sums of the dump beside the snapshot.
    pub blocks: Option<Blocks>,
    /// Bytes by path, except heap memory below `explicit`.
    figures: BTreeMap<String, i64>,
    /// Heap bytes below `explicit`, by the first two segments of the path.
    heap: BTreeMap<String, i64>,
    mapped: BTreeMap<String, i64>,
}

impl ProcessSnapshot {
    /// Returns whether two snapshots are of one process that was not restarted between them.
    pub fn is_of_same_process(&self, other: &ProcessSnapshot) -> bool {
        let [(pid, began), (other_pid, other_began)] = [self.identity, other.identity];
        let is_later =
            began.zip(other_began).is_some_and(|(a, b)| a.abs_diff(b) > START_TOLERANCE_MS);
        pid == other_pid && !is_later
    }

    /// Returns a figure by its path.
    pub fn figure(&self, path: &str) -> Option<i64> {
        self.figures.get(path).copied()
    }

    /// Returns whether there is a figure at or below a path.
    pub fn has(&self, path: &str) -> bool {
        self.figures.keys().any(|other| is_below(other, path))
    }

    /// Returns the sum of all figures at or below a path.
    pub fn below(&self, path: &str) -> i64 {
        let figures = self.figures.iter().filter(|(other, _)| is_below(other, path));
        add_up(figures.map(|(_, bytes)| bytes))
    }

    /// Returns the reported heap memory, by the first two segments of the path.
    pub fn heap(&self) -> &BTreeMap<String, i64> {
        &self.heap
    }

    /// Returns the memory that reporters report as mapped, by the first two segments of the path.
    pub fn mapped(&self) -> &BTreeMap<String, i64> {
        &self.mapped
    }

    fn add(&mut self, path: &str, kind: f64, bytes: i64) {
        let top = match path.match_indices('/').nth(1) {
            Some((end, _)) => &path[..end],
            None => path,
        };
        let own = ["explicit/heap-overhead", "explicit/thread-stacks"];
        let sums = match kind {
            _ if !path.starts_with("explicit/") || own.contains(&top) => {
                let sum = self.figures.entry(path.to_owned()).or_default();
                *sum = add_up([&*sum, &bytes]);
                return;
            }
            HEAP => &mut self.heap,
            NON_HEAP => &mut self.mapped,
            _ => return,
        };
        let sum = sums.entry(top.to_owned()).or_default();
        *sum = add_up([&*sum, &bytes]);
    }
}

fn is_below(path: &str, of: &str) -> bool {
    path.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A collector of the reports of a file, by process.
#[derive(Debug, Default)]
pub struct ProcessSnapshots {
    /// The sums by the name of the process.
    processes: BTreeMap<String, ProcessSnapshot>,
}

impl Sink for ProcessSnapshots {
    fn restart(&mut self) {
        self.processes.clear();
    }

    fn report(&mut self, entry: &Entry<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let Some(NumericEntry { process, kind, units, amount }) = entry.numbers() else {
            return Ok(());
        };
        let snapshot = match self.processes.get_mut(process) {
            Some(snapshot) => snapshot,
            None => self.processes.entry(process.to_owned()).or_default(),
        };
        if units == BYTES {
            snapshot.add(entry.path, kind, amount);
        } else if units == COUNT && entry.path == "threads" {
            snapshot.threads = add_up([&amount]);
        }
        Ok(())
    }
}

impl ProcessSnapshots {
    /// Returns the process with this name; by default the writer of the file, the main process or
    /// the largest.
    pub fn choose(mut self, wanted: Option<&str>, header: &Header) -> Option<ProcessSnapshot> {
        let own = header.own.process.as_ref();
        let writer = own.map(|process| match process.pid {
            Some(pid) => format!("{} (pid {pid})", process.name),
            None => process.name.clone(),
        });
        let resident = |snapshot: &ProcessSnapshot| snapshot.figure("resident").unwrap_or(-1);
        let biggest = self.processes.iter().max_by_key(|(_, snapshot)| resident(snapshot));
        let mut names = self.processes.keys();
        let is_writer = |name: &&String| Some(*name) == writer.as_ref();
        let chosen = match wanted {
            Some(wanted) => names.find(|name| name.contains(wanted)),
            None => names
                .clone()
                .find(is_writer)
                .or_else(|| names.find(|name| name.is_empty() || name.starts_with("Main Process")))
                .or_else(|| Some(biggest?.0)),
        };
        let name = chosen?.clone();
        let snapshot = self.processes.remove(&name)?;
        let is_own = Some(&name) == writer.as_ref() || name.is_empty();
        let own = own.filter(|_| is_own);
        Some(ProcessSnapshot {
            process: if name.is_empty() {
                writer.unwrap_or_else(|| "the program".into())
            } else {
                name
            },
            identity: (own.and_then(|own| own.pid), own.and_then(|own| own.start_ms)),
            time_ms: header.own.time_ms,
            allocator: header.own.allocator.clone().filter(|_| is_own),
            notes: notes::of_figures(&header.own),
            is_incomplete: !header.own.missed.is_empty(),
            ..snapshot
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
