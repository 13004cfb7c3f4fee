//! The agent's own metrics, as OpenMetrics text.

use std::sync::atomic::{AtomicU64, Ordering};

use super::spool::Spool;
use super::usage::{Usage, usage};

/// Counters since the agent was started, and figures of its last round.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    pub(super) snapshots: Counter,
    pub(super) dumps: Counter,
    pub(super) failed: Counter,
    pub(super) skipped_full: Counter,
    pub(super) skipped_cost: Counter,
    pub(super) defective: Counter,
    pub(super) batches: Counter,
    pub(super) files: Counter,
    pub(super) bytes: Counter,
    pub(super) retries: Counter,
    pub(super) waited_us: Counter,
    pub(super) programs: Counter,
}

/// A number that threads add to.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Metrics {
    /// Returns all metrics as OpenMetrics text.
    pub(super) fn text(&self, spool: &Spool) -> String {
        let counters = [
            ("snapshots", "Reports that were taken and are on disk", &self.snapshots),
            ("dumps", "Dumps of the heap that were taken", &self.dumps),
            ("failed_snapshots", "Programs that did not answer", &self.failed),
            (
                "skipped_rounds",
                "Rounds without snapshots because the spool is full",
                &self.skipped_full,
            ),
            (
                "postponed_snapshots",
                "Snapshots postponed because of their cost",
                &self.skipped_cost,
            ),
            ("defective_snapshots", "Snapshots that could not be read", &self.defective),
            ("batches", "Batches", &self.batches),
            ("shipped_files", "Files that are in the store", &self.files),
            ("shipped_bytes", "Bytes of these files", &self.bytes),
            ("ship_retries", "Attempts to ship a file that failed", &self.retries),
        ];
        let mut text = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, value: String| {
            let ending = if kind == "counter" { "_total" } else { "" };
            text += &format!(
                "# TYPE memreport_agent_{name} {kind}\n# HELP memreport_agent_{name} {help}.\n\
                 memreport_agent_{name}{ending} {value}\n"
            );
        };
        for (name, help, counter) in counters {
            metric(name, "counter", help, counter.get().to_string());
        }
        let seconds = |micros: u64| format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
        let waited = seconds(self.waited_us.get());
        metric("waited_seconds", "counter", "Time in which programs took snapshots", waited);
        metric("programs", "gauge", "Programs of the last round", self.programs.get().to_string());
        metric("spool_bytes", "gauge", "Bytes that are not shipped yet", spool.used().to_string());
        if let Some(Usage { cpu_us, resident }) = usage() {
            metric("cpu_seconds", "counter", "Processor time of the agent", seconds(cpu_us));
            metric("resident_bytes", "gauge", "Resident memory of the agent", resident.to_string());
        }
        text + "# EOF\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dashboard_asks_for_metrics_that_exist() {
        let board = include_str!("../../../examples/fleet/grafana.json");
        let board: serde_json::Value = serde_json::from_str(board).expect("it is JSON");
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Spool::open(folder.path(), 1).expect("it is new");
        let own = Metrics::default().text(&spool);
        let formats = include_str!("../../../docs/guide/src/reference/formats.md");
        let mut names = 0;
        for panel in board["panels"].as_array().expect("panels") {
            for target in panel["targets"].as_array().expect("targets") {
                let expression = target["expr"].as_str().expect("an expression");
                let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                let is_metric =
                    |word: &&str| word.starts_with("memreport_") || word.starts_with("process_");
                for name in words.filter(is_metric) {
                    let is_known = own.lines().any(|line| {
                        line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' '))
                    });
                    let is_of_programs = [format!("`{name}`"), format!("`{name}{{")]
                        .iter()
                        .any(|text| formats.contains(text.as_str()));
                    assert!(is_known || is_of_programs, "{name}");
                    names += 1;
                }
            }
        }
        assert!(names > 15, "{names}");
    }
}
