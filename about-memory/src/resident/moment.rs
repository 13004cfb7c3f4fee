//! What one snapshot says of one process: the figures that resident memory is explained by.

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
pub struct Moment {
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

/// The blocks of a dump, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// Asked for, of blocks that somebody reports.
    pub reported: i64,
    /// What the allocator added to those.
    pub reported_slop: i64,
    /// Asked for, of blocks that nobody reports.
    pub dark: i64,
    /// What the allocator added to those.
    pub dark_slop: i64,
}

impl Moment {
    /// Whether two snapshots are of one process that was not started again between them, as far as they say.
    pub fn is_of_same_process(&self, other: &Moment) -> bool {
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
pub struct Moments {
    /// By the process's name; its reports, added up.
    processes: BTreeMap<String, Moment>,
}

impl Sink for Moments {
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
        let moment = match self.processes.get_mut(process) {
            Some(moment) => moment,
            None => self.processes.entry(process.to_owned()).or_default(),
        };
        if *units == BYTES {
            moment.add(entry.path, *kind, amount);
        } else if *units == COUNT && entry.path == "threads" {
            moment.threads = amount;
        }
        Ok(())
    }
}

impl Moments {
    /// The process of that name, else the one that wrote the file, the main one, or the biggest.
    pub fn choose(mut self, wanted: Option<&str>, header: &Header) -> Option<Moment> {
        let own = header.own.process.as_ref();
        let writer = own.map(|process| match process.pid {
            Some(pid) => format!("{} (pid {pid})", process.name),
            None => process.name.clone(),
        });
        let resident = |moment: &Moment| moment.figure("resident").unwrap_or(-1);
        let biggest = self.processes.iter().max_by_key(|(_, moment)| resident(moment));
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
        let moment = self.processes.remove(&name)?;
        let is_own = Some(&name) == writer.as_ref() || name.is_empty();
        let own = own.filter(|_| is_own);
        Some(Moment {
            process: if name.is_empty() {
                writer.unwrap_or_else(|| "the program".into())
            } else {
                name
            },
            identity: (own.and_then(|own| own.pid), own.and_then(|own| own.start_ms)),
            time_ms: header.own.time_ms,
            allocator: header.own.allocator.clone().filter(|_| is_own),
            ..moment
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use memreport::snapshot::read::{Options, read};

    /// A moment of these reports: `path kind bytes`, a line each.
    pub(crate) fn moment(minute: u64, reports: &str) -> Moment {
        let reports: Vec<String> = reports
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| {
                let words: Vec<_> = line.split_whitespace().collect();
                let [path, kind, amount] = words[..] else { panic!("{line}") };
                format!(
                    r#"{{"process":"server (pid 7)","path":"{path}","kind":{kind},"units":0,"amount":{amount},"description":""}}"#
                )
            })
            .collect();
        let text = format!(
            r#"{{"version":1,"hasMozMallocUsableSize":true,"memreport":{{"version":1,"allocator":"glibc","timeMs":{},
               "process":{{"name":"server","pid":7,"startMs":1000}}}},"reports":[{}]}}"#,
            1_000_000 + minute * 60_000,
            reports.join(",")
        );
        let mut moments = Moments::default();
        let header = read(&mut text.as_bytes(), Options::default(), &mut moments).unwrap();
        moments.choose(None, &header).unwrap()
    }

    #[test]
    fn reports_are_added_up_by_kind() {
        let moment = moment(
            2,
            "explicit/a/b 1 10
             explicit/a/c 1 5
             explicit/heap-overhead/bin-unused 0 7
             explicit/map 0 3
             explicit/thread-stacks/x 0 9
             rss/files/x 2 100
             rss/filesystem 2 1
             resident 2 200",
        );
        assert_eq!(moment.heap(), &BTreeMap::from([("explicit/a".to_owned(), 15)]));
        assert_eq!(moment.mapped(), &BTreeMap::from([("explicit/map".to_owned(), 3)]));
        assert_eq!(moment.below("rss/files"), 100);
        assert_eq!(moment.below("explicit/heap-overhead"), 7);
        assert_eq!(moment.figure("resident"), Some(200));
        assert_eq!(moment.process, "server (pid 7)");
        assert_eq!(moment.identity, (Some(7), Some(1000)));
        assert_eq!(moment.time_ms, Some(1_120_000));
    }
}
