//! A program with OpenTelemetry's spans, and the bytes that it counts in each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use super::{Bench, output};
use crate::failure::Failure;

/// The dump of the program, and what it counts.
pub(super) struct Traced {
    pub(super) dump: PathBuf,
    /// The usable bytes of blocks with more than 1,000 bytes, by `SCOPE⇥TRACE⇥SPAN`. Identifiers
    /// are `-` for traces that are not sampled.
    pub(super) bytes: BTreeMap<String, i64>,
}

impl Traced {
    /// Runs the program.
    pub(super) fn run(bench: &Bench, name: &str) -> Result<Self, Failure> {
        let report = bench.folder.join(format!("{name}.json.gz"));
        let mut program = Command::new(Bench::example("traced_program")?);
        let said = output(program.arg(&report).env("DMD", "1"))?;
        let mut bytes: BTreeMap<String, i64> = BTreeMap::new();
        for line in said.lines() {
            let (span, amount) = line.rsplit_once('\t').ok_or("a line without bytes")?;
            *bytes.entry(span.to_owned()).or_default() += amount.parse::<i64>()?;
        }
        Ok(Traced { dump: report.with_file_name(format!("{name}.dmd.json.gz")), bytes })
    }

    /// Returns the number of scopes in sampled traces.
    pub(super) fn in_traces(&self) -> usize {
        self.bytes.keys().filter(|span| !span.ends_with("\t-")).count()
    }

    /// Returns the number of spans in sampled traces.
    pub(super) fn spans(&self) -> usize {
        let ids = self.bytes.keys().filter_map(|span| span.rsplit('\t').next());
        ids.filter(|id| *id != "-").collect::<BTreeSet<_>>().len()
    }

    /// Returns a line for each span that has other bytes in `found`.
    pub(super) fn differences(&self, found: &BTreeMap<String, i64>) -> Vec<String> {
        let spans: BTreeSet<&String> = self.bytes.keys().chain(found.keys()).collect();
        let differ = spans.into_iter().filter(|span| found.get(*span) != self.bytes.get(*span));
        let line = |span: &String| {
            format!("{span}: {:?} instead of {:?}", found.get(span), self.bytes.get(span))
        };
        differ.map(line).collect()
    }
}
