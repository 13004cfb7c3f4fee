//! Makes batches of pending snapshots: one for each partition, with a file for each table.

use std::collections::BTreeMap;
use std::io::Write;

use about_memory::Failure;
use memreport_analysis::read;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::metrics::Metrics;
use super::spool::{Part, Spool, is_full_disk};
use crate::dataset::Partition;
use crate::gather::{Batch, Snapshot};
use crate::resource::Resource;

/// The bytes of pending snapshots at which a batch is made before its time.
pub(super) const MOST: u64 = 32 << 20;

/// A snapshot as it is in the spool.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) snapshot: Snapshot,
    /// The report, gzipped.
    pub(super) report: Vec<u8>,
    /// The dump of the same moment, gzipped.
    pub(super) dump: Option<Vec<u8>>,
}

impl Pending {
    /// Returns the name of its file. Names are in the order of time.
    pub(super) fn name(&self) -> String {
        format!("{:015}-{}", self.snapshot.time_ms, self.snapshot.id)
    }

    /// Returns the bytes of its file: a line of JSON, the report, the dump.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let Snapshot { id, time_ms, resource, cost_us } = &self.snapshot;
        let attributes: BTreeMap<&str, &str> = resource.iter().collect();
        let header = json!({
            "id": id, "timeMs": time_ms, "costUs": cost_us, "resource": attributes,
            "report": self.report.len(),
        });
        let mut bytes = header.to_string().into_bytes();
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.report);
        bytes.extend_from_slice(self.dump.as_deref().unwrap_or_default());
        bytes
    }

    /// Reads the bytes of a file; `None` if they are defective.
    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let header: Value = serde_json::from_slice(&bytes[..end]).ok()?;
        let mut resource = Resource::default();
        for (key, value) in header["resource"].as_object()? {
            resource.set(key, value.as_str()?);
        }
        let length = usize::try_from(header["report"].as_u64()?).ok()?;
        let (report, dump) = bytes[end + 1..].split_at_checked(length)?;
        let snapshot = Snapshot {
            id: header["id"].as_str()?.to_owned(),
            time_ms: header["timeMs"].as_u64()?,
            resource,
            cost_us: header["costUs"].as_u64(),
        };
        let dump = (!dump.is_empty()).then(|| dump.to_vec());
        Some(Pending { snapshot, report: report.to_vec(), dump })
    }

    /// Adds its rows; `None` if it is defective.
    fn add_to(&self, batch: &mut Batch) -> Option<()> {
        // A dump is read first: a snapshot is in the batch as a whole, or not.
        let dump = match &self.dump {
            Some(bytes) => Some(read::read(&bytes[..], read::DEFAULT_LIMIT).ok()?),
            None => None,
        };
        batch.add_report(&self.snapshot, &self.report).ok()?;
        if let Some(dump) = dump {
            batch.add_dump(&self.snapshot.of_dump(), &dump).ok()?;
        }
        Some(())
    }
}

/// The snapshots of a partition that become one batch.
#[derive(Default)]
struct Group {
    batch: Batch,
    names: Vec<String>,
    hash: Sha256,
    first_ms: u64,
}

/// Makes batches of all pending snapshots. A full disk is no error: it is tried again later.
pub(super) fn make(spool: &Spool, metrics: &Metrics, notes: &mut dyn Write) -> Result<(), Failure> {
    let mut groups: BTreeMap<Partition, Group> = BTreeMap::new();
    let mut read_bytes = 0;
    for name in spool.pending_names()? {
        let bytes = spool.read_pending(&name)?;
        read_bytes += bytes.len() as u64;
        let pending = Pending::of_bytes(&bytes);
        let Some(pending) =
            pending.filter(|pending| pending.add_to(&mut Batch::default()).is_some())
        else {
            writeln!(notes, "{name}: a defective snapshot is left out")?;
            metrics.defective.add(1);
            spool.remove_pending(&[name])?;
            continue;
        };
        let Snapshot { id, time_ms, resource, .. } = &pending.snapshot;
        let group = groups.entry(Partition::new(resource, *time_ms)).or_default();
        let _ = pending.add_to(&mut group.batch);
        group.hash.update(id);
        if group.names.is_empty() {
            group.first_ms = *time_ms;
        }
        group.names.push(name);
        // What memory holds at once has a limit, too; the rest is for the next batch.
        if read_bytes > 2 * MOST {
            break;
        }
    }
    for (partition, group) in groups {
        let digest = group.hash.finalize();
        let hash: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!("{:015}-{hash}", group.first_ms);
        let mut files = Vec::new();
        for (table, rows) in group.batch.into_tables() {
            let local = format!("{}.parquet", table.name);
            files.push((Part { local, path: partition.path(table, &name) }, rows.parquet()?));
        }
        match spool.add_batch(&name, &files, &group.names) {
            Ok(()) => metrics.batches.add(1),
            Err(error) if is_full_disk(&error) => {
                writeln!(notes, "the disk is full; {} snapshots wait", group.names.len())?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(time_ms: u64) -> Pending {
        let report = br#"{"version":1,"hasMozMallocUsableSize":true,"reports":[
            {"process":"","path":"resident","kind":2,"units":0,"amount":9,"description":""}]}"#;
        let mut resource = Resource::default();
        resource.set("service.name", "shop");
        let snapshot = Snapshot::of_file(report, time_ms, resource);
        Pending { snapshot, report: report.to_vec(), dump: None }
    }

    #[test]
    fn snapshots_of_a_partition_are_one_batch_with_the_same_name_again() {
        let names = || {
            let folder = tempfile::tempdir().expect("a folder");
            let spool = Spool::open(folder.path(), 1 << 20).expect("it is new");
            for time in [5, 6, 86_400_000] {
                let pending = pending(time);
                spool.add_pending(&pending.name(), &pending.to_bytes()).expect("space");
            }
            spool.add_pending("000-defective", b"{}\n").expect("space");
            let (metrics, mut notes) = (Metrics::default(), Vec::new());
            make(&spool, &metrics, &mut notes).expect("it is a spool");
            assert_eq!(metrics.defective.get(), 1);
            assert!(spool.pending_names().expect("none").is_empty());
            let batches = spool.batches().expect("two");
            batches.into_iter().flat_map(|batch| batch.parts).collect::<Vec<_>>()
        };
        let parts = names();
        assert_eq!(parts, names());
        let tables: Vec<_> = parts.iter().map(|part| part.local.as_str()).collect();
        let expected =
            ["reports.parquet", "snapshots.parquet", "reports.parquet", "snapshots.parquet"];
        assert_eq!(tables, expected, "`snapshots` is last");
    }
}
