//! `go tool pprof` reads the labels by which Pyroscope, Parca and Polar Signals tell processes and
//! spans apart, and their values are the program's.
//!
//! Pyroscope refuses a profile whose labels have other names than Prometheus's, more than 30 of
//! them, or values of more than 2,048 bytes. So do the others, or they rename them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::Command;

use super::traced::Traced;
use super::{Bench, json, output};
use crate::failure::Failure;
use crate::on_path;

/// A sample of `go tool pprof -raw`.
#[derive(Default)]
struct Sample {
    bytes: i64,
    labels: BTreeMap<String, String>,
}

/// Returns whether the labels are right.
pub(super) fn run(bench: &Bench, out: &mut dyn Write) -> Result<bool, Failure> {
    let go = match on_path::find(&["go"], "golang-go") {
        Ok(go) => go,
        Err(words) => {
            writeln!(out, "clients fleet labels: not run: {words}")?;
            return Ok(true);
        }
    };
    let traced = Traced::run(bench, "labels")?;
    let file = bench.folder.join("labels.pb.gz");
    let mut export = Command::new(&bench.about_memory);
    export.arg("export").arg(&traced.dump).args(["--to", "pprof", "--spans"]);
    export.args(["--label", "service.name=shop", "--label", "service_version=1.4.2"]);
    output(export.arg("-o").arg(&file))?;
    let pprof = |mode: &str| {
        let mut command = Command::new(&go);
        command.args(["tool", "pprof", mode, "-unit=B"]).arg(&file);
        output(command.env("HOME", &bench.folder).env("PPROF_TMPDIR", &bench.folder))
    };
    let samples = samples(&pprof("-raw")?)?;
    let tags = pprof("-tags")?;
    let mut heap = Command::new(&bench.about_memory);
    let heap = json(heap.args(["heap", "tree", "--json"]).arg(&traced.dump))?;
    let total: i64 = samples.iter().map(|sample| sample.bytes).sum();
    let names: BTreeSet<&String> = samples.iter().flat_map(|sample| sample.labels.keys()).collect();
    let has_service = |sample: &Sample| {
        let is = |key: &str, value| sample.labels.get(key).is_some_and(|text| text == value);
        is("service_name", "shop") && is("service_version", "1.4.2")
    };
    let values = samples.iter().flat_map(|sample| sample.labels.values());
    let is_accepted = names.iter().all(|name| is_name(name))
        && names.len() <= 30
        && values.map(String::len).all(|length| length <= 2048);
    let wrong = traced.differences(&by_span(&samples));
    let holds = heap["bytes"] == total
        && samples.iter().all(has_service)
        && is_accepted
        && wrong.is_empty()
        && traced.spans() > 1
        && tags.contains("service_name: Total")
        && tags.contains("span_id: Total");
    writeln!(
        out,
        "clients fleet labels: {}: {} samples with {total} bytes, all of service_name shop; {} \
         scopes in {} spans by trace_id and span_id, {} of them with other bytes than the program \
         counts; labels are {}",
        if holds { "passed" } else { "FAILED" },
        samples.len(),
        traced.in_traces(),
        traced.spans(),
        wrong.len(),
        names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", "),
    )?;
    for line in wrong.iter().take(5) {
        writeln!(out, "  {line}")?;
    }
    Ok(holds)
}

/// Returns whether Prometheus accepts a name of a label.
fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(is_plain)
}

/// Returns the bytes of large blocks by scope, trace and span.
fn by_span(samples: &[Sample]) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    for Sample { bytes, labels } in samples {
        let size = labels.get("bytes").and_then(|size| size.strip_suffix(" bytes"));
        let is_large = size.and_then(|size| size.parse::<i64>().ok()).is_some_and(|n| n > 1000);
        if let (true, Some(scope)) = (is_large, labels.get("scope")) {
            let id = |name: &str| labels.get(name).map_or("-", String::as_str);
            let span = format!("{scope}\t{}\t{}", id("trace_id"), id("span_id"));
            *sums.entry(span).or_default() += bytes;
        }
    }
    sums
}

/// Parses `go tool pprof -raw`: a line of values and locations, and lines of labels.
fn samples(text: &str) -> Result<Vec<Sample>, Failure> {
    let (_, text) = text.split_once("\nSamples:\n").ok_or("no samples")?;
    let (types, text) = text.split_once('\n').ok_or("no types")?;
    let place = types.split_whitespace().position(|name| name.starts_with("inuse_space"));
    let place = place.ok_or("no inuse_space")?;
    let mut samples: Vec<Sample> = Vec::new();
    for line in text.lines().take_while(|line| *line != "Locations") {
        if let Some((values, _)) = line.split_once(": ").filter(|(text, _)| !text.contains('[')) {
            let bytes = values.split_whitespace().nth(place).ok_or("too few values")?;
            samples.push(Sample { bytes: bytes.parse()?, ..Sample::default() });
            continue;
        }
        let sample = samples.last_mut().ok_or("labels of nothing")?;
        // A value ends before the next key: `a:[b] c:[d e]`.
        let line = line.trim();
        for part in line.strip_suffix(']').unwrap_or(line).split("] ") {
            let (key, value) = part.split_once(":[").ok_or("no value")?;
            sample.labels.insert(key.to_owned(), value.to_owned());
        }
    }
    Ok(samples)
}
