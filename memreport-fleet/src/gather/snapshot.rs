//! The identity of a snapshot, and its row.

use crate::resource::Resource;
use crate::schema::VERSION;
use crate::table::Value;
use memreport_analysis::export::Heap;
use sha2::{Digest, Sha256};

/// A snapshot of a process: when, and of what.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// 32 hexadecimal digits.
    pub id: String,
    /// Milliseconds since 1970 began.
    pub time_ms: u64,
    /// The process's resource.
    pub resource: Resource,
    /// The time that the program took to answer, in microseconds.
    pub cost_us: Option<u64>,
}

/// The kind of file that a snapshot is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A memory report.
    Report,
    /// A dump of the heap.
    Dump,
    /// A recording.
    Recording,
}

impl Source {
    /// Returns its name in the table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Source::Report => "report",
            Source::Dump => "dump",
            Source::Recording => "recording",
        }
    }
}

/// The figures of a snapshot, as far as its file has them.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    pub(super) program: Option<String>,
    pub(super) pid: Option<u64>,
    pub(super) start_ms: Option<u64>,
    pub(super) allocator: Option<String>,
    pub(super) is_estimate: Option<bool>,
    pub(super) is_incomplete: Option<bool>,
    pub(super) resident: Option<i64>,
    pub(super) resident_peak: Option<i64>,
    pub(super) virtual_bytes: Option<i64>,
    pub(super) heap_allocated: Option<u64>,
    pub(super) heap_blocks: Option<i64>,
    pub(super) heap_committed: Option<i64>,
    pub(super) heap_overhead: Option<i64>,
    pub(super) heap_unclassified: Option<i64>,
    pub(super) explicit: Option<i64>,
    pub(super) threads: Option<i64>,
    pub(super) listed_blocks: Option<i64>,
    pub(super) listed_bytes: Option<i64>,
    pub(super) untracked_blocks: Option<i64>,
    pub(super) untracked_bytes: Option<i64>,
    pub(super) tracker: Option<u64>,
}

impl Figures {
    /// Returns what a heap states about its process.
    pub(super) fn of_heap(heap: &Heap) -> Self {
        let (all, untracked) = (heap.totals(), heap.untracked());
        let program = heap.program().rsplit('/').next().filter(|name| !name.starts_with('('));
        Figures {
            program: program.map(str::to_owned),
            pid: Some(u64::from(heap.pid())).filter(|pid| *pid > 0),
            listed_blocks: Some(whole(all.blocks - untracked.blocks)),
            listed_bytes: Some(whole(all.usable() - untracked.usable())),
            untracked_blocks: Some(whole(untracked.blocks)),
            untracked_bytes: Some(whole(untracked.usable())),
            ..Figures::default()
        }
    }
}

/// Returns a sum as a column has it.
pub(super) fn whole(sum: i128) -> i64 {
    i64::try_from(sum).unwrap_or(if sum < 0 { i64::MIN } else { i64::MAX })
}

impl Snapshot {
    /// Makes a snapshot of a file. The same file of the same resource has the same id.
    #[must_use]
    pub fn of_file(bytes: &[u8], time_ms: u64, resource: Resource) -> Self {
        let mut hash = Sha256::new();
        for (key, value) in resource.iter() {
            hash.update(format!("{}:{key}={}:{value};", key.len(), value.len()));
        }
        hash.update(time_ms.to_le_bytes());
        hash.update(bytes);
        let id = hash.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        Snapshot { id, time_ms, resource, cost_us: None }
    }

    /// Returns the snapshot of the dump of the same moment, which has a row and an id of its own.
    #[must_use]
    pub fn of_dump(&self) -> Self {
        Snapshot {
            cost_us: None,
            ..Snapshot::of_file(self.id.as_bytes(), self.time_ms, self.resource.clone())
        }
    }

    /// Returns a row: the columns of every table, then these values.
    pub(crate) fn row<'a>(&'a self, values: impl IntoIterator<Item = Value<'a>>) -> Vec<Value<'a>> {
        let [service, version, host] = self.resource.partition();
        let time = i64::try_from(self.time_ms).unwrap_or(i64::MAX);
        let key = [
            Value::Text(&self.id),
            Value::Int(time),
            Value::Text(service),
            Value::Text(version),
            Value::Text(host),
        ];
        key.into_iter().chain(values).collect()
    }

    /// Returns the row of the table `snapshots`.
    pub(super) fn snapshot_row<'a>(
        &'a self,
        source: Source,
        figures: &'a Figures,
    ) -> Vec<Value<'a>> {
        let attribute = |key| Value::from(self.resource.get(key));
        let truth = |value: Option<bool>| value.map_or(Value::Null, Value::Bool);
        let own_program = self.resource.get("process.executable.name");
        let values = [
            Value::Int(i64::from(VERSION)),
            Value::Text(source.name()),
            attribute("service.namespace"),
            attribute("service.instance.id"),
            attribute("deployment.environment.name"),
            attribute("k8s.namespace.name"),
            attribute("k8s.pod.name"),
            attribute("k8s.container.name"),
            figures.program.as_deref().or(own_program).into(),
            figures.pid.into(),
            figures.start_ms.into(),
            figures.allocator.as_deref().into(),
            truth(figures.is_estimate),
            truth(figures.is_incomplete),
            figures.resident.into(),
            figures.resident_peak.into(),
            figures.virtual_bytes.into(),
            figures.heap_allocated.into(),
            figures.heap_blocks.into(),
            figures.heap_committed.into(),
            figures.heap_overhead.into(),
            figures.heap_unclassified.into(),
            figures.explicit.into(),
            figures.threads.into(),
            figures.listed_blocks.into(),
            figures.listed_bytes.into(),
            figures.untracked_blocks.into(),
            figures.untracked_bytes.into(),
            figures.tracker.into(),
            self.cost_us.into(),
        ];
        self.row(values)
    }
}
