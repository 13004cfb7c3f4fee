//! What one snapshot says of one process: the figures that resident memory is explained by.

use super::blocks::Blocks;
use memreport::snapshot::read::{Entry, Field, Header, Sink};
use std::collections::BTreeMap;
use std::error::Error;

/// Kinds of reports, as files have them.
const NON_HEAP: f64 = 0.0;
const HEAP: f64 = 1.0;
const BYTES: f64 = 0.0;
const COUNT: f64 = 1.0;

/// How far two files of one process may disagree on when it began, in milliseconds: each measures it anew.
const BEGAN: u64 = 2000;

/// What one snapshot says of one process. All figures are bytes.
#[derive(Clone, Debug, Default)]
pub struct ProcessSnapshot {
    /// The process, as its reports or the file name it.
    pub process: String,
    /// The number of the process, and when it began in milliseconds since 1970, where known.
    pub identity: (Option<u64>, Option<u64>),
    /// When the snapshot was taken, in milliseconds since 1970.
    pub time_ms: Option<u64>,
    /// What the program's allocator is called.
    pub allocator: Option<String>,
    /// How many threads the process had; 0 where the file does not say.
    pub threads: i64,
    /// What the dump beside the snapshot adds.
    pub blocks: Option<Blocks>,
    /// By path, all but heap memory below `explicit`.
    figures: BTreeMap<String, i64>,
    /// Below `explicit`, by the two first segments of the path.
    heap: BTreeMap<String, i64>,
    mapped: BTreeMap<String, i64>,
}

impl ProcessSnapshot {
    /// Whether two snapshots are of one process that was not started again between them, as far as they say.
    pub fn is_of_same_process(&self, other: &ProcessSnapshot) -> bool {
        let [(pid, began), (other_pid, other_began)] = [self.identity, other.identity];
        let is_later = began.zip(other_began).is_some_and(|(a, b)| a.abs_diff(b) > BEGAN);
        pid == other_pid && !is_later
    }

    /// A figure by its whole path.
    pub fn figure(&self, path: &str) -> Option<i64> {
        self.figures.get(path).copied()
    }

    /// Whether there is any figure below a path, or at it.
    pub fn has(&self, path: &str) -> bool {
        self.figures.keys().any(|other| is_below(other, path))
    }

    /// The sum of all figures below a path, or at it.
    pub fn below(&self, path: &str) -> i64 {
        let figures = self.figures.iter().filter(|(other, _)| is_below(other, path));
        figures.map(|(_, bytes)| bytes).sum()
    }

    /// What reporters say is on the heap, by the first two segments of their paths.
    pub fn heap(&self) -> &BTreeMap<String, i64> {
        &self.heap
    }

    /// What reporters say the program has mapped itself, by the first two segments of their paths.
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
                *self.figures.entry(path.to_owned()).or_default() += bytes;
                return;
            }
            HEAP => &mut self.heap,
            NON_HEAP => &mut self.mapped,
            _ => return,
        };
        *sums.entry(top.to_owned()).or_default() += bytes;
    }
}

fn is_below(path: &str, of: &str) -> bool {
    path.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Takes the reports of all processes of a file, and gives one of them.
#[derive(Debug, Default)]
pub struct ProcessSnapshots {
    /// By the process's name; its reports, added up.
    processes: BTreeMap<String, ProcessSnapshot>,
}

impl Sink for ProcessSnapshots {
    fn restart(&mut self) {
        self.processes.clear();
    }

    fn report(&mut self, entry: &Entry<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let (Field::Number(kind), Field::Number(units), Field::Number(amount)) =
            (&entry.kind, &entry.units, &entry.amount)
        else {
            return Ok(());
        };
        let process = match &entry.process {
            Field::Text(name) => name.as_ref(),
            _ => "",
        };
        if amount.is_nan() || amount.abs() >= 9e15 {
            return Ok(());
        }
        // A double of this size is a whole number exactly.
        let amount: i64 = format!("{amount:.0}").parse()?;
        let snapshot = match self.processes.get_mut(process) {
            Some(snapshot) => snapshot,
            None => self.processes.entry(process.to_owned()).or_default(),
        };
        if *units == BYTES {
            snapshot.add(entry.path, *kind, amount);
        } else if *units == COUNT && entry.path == "threads" {
            snapshot.threads = amount;
        }
        Ok(())
    }
}

impl ProcessSnapshots {
    /// The process of that name, else the one that wrote the file, the main one, or the biggest.
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
            ..snapshot
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
