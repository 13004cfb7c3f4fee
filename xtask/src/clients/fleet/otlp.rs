//! The reference package of protocol buffers reads our OpenTelemetry profiles: their totals are the
//! dump's, and their links are the spans of a traced program.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::traced::Traced;
use super::{Bench, files, json, output};
use crate::failure::Failure;

/// Prints the totals of a file by name, with the values of attributes.
const READER: &str = include_str!("otlp/totals.py");

/// Returns whether the totals are equal.
pub(super) fn run(bench: &Bench, out: &mut dyn Write) -> Result<bool, Failure> {
    let module = ["opentelemetry.proto.profiles.v1development.profiles_pb2", "opentelemetry-proto"];
    if !bench.has_module("otlp", module, out)? {
        return Ok(true);
    }
    let folder = bench.folder.join("otlp");
    let mut generate = Command::new(Bench::example("generate_fleet")?);
    generate.args(["--hosts", "4", "--days", "1", "--reports", "1", "--dumps", "1"]);
    let single = folder.join("files");
    output(generate.arg("--files").arg(&single).arg("--output").arg(folder.join("dataset")))?;
    let mut holds = true;
    let dumps = files(&single, ".dmd.json")?;
    for dump in &dumps {
        let found = read_profile(bench, dump)?;
        let heap =
            json(Command::new(&bench.about_memory).args(["heap", "tree", "--json"]).arg(dump))?;
        let by_scope = json(
            Command::new(&bench.about_memory)
                .args(["heap", "census", "--json", "--by", "scope"])
                .arg(dump),
        )?;
        let scope = &by_scope["request > login"]["bytes"];
        let is_equal = found["inuse_space"] == heap["bytes"]
            && found["inuse_objects"] == heap["blocks"]
            && found["scopes"]["request > login"] == *scope
            && found["service"] == "shop"
            && scope.is_i64();
        if !is_equal {
            writeln!(out, "  {}: {found} instead of {} bytes", dump.display(), heap["bytes"])?;
        }
        holds &= is_equal;
    }
    writeln!(
        out,
        "clients fleet otlp: {}: {} profiles with the totals of their dumps",
        if holds { "passed" } else { "FAILED" },
        dumps.len()
    )?;
    Ok(spans(bench, out)? && holds && !dumps.is_empty())
}

/// Exports a dump, and returns what the reference package reads.
fn read_profile(bench: &Bench, dump: &Path) -> Result<Value, Failure> {
    let file = dump.with_extension("otlp");
    let mut export = Command::new(&bench.fleet);
    export.arg("export").arg(dump).args(["--to", "otlp", "--service", "shop", "-o"]).arg(&file);
    output(&mut export)?;
    json(Command::new(&bench.python).args(["-c", READER]).arg(&file))
}

/// Returns whether each span of a traced program, and nothing else, has the bytes that the program
/// counts in it, by the identifiers that OpenTelemetry gave to the program.
fn spans(bench: &Bench, out: &mut dyn Write) -> Result<bool, Failure> {
    let traced = Traced::run(bench, "otlp")?;
    let found = read_profile(bench, &traced.dump)?;
    let found: BTreeMap<String, i64> = found["spans"]
        .as_object()
        .ok_or("no spans")?
        .iter()
        .filter_map(|(span, bytes)| Some((span.clone(), bytes.as_i64()?)))
        .collect();
    let wrong = traced.differences(&found);
    let (of_traces, all) = (traced.in_traces(), traced.bytes.len());
    let holds = wrong.is_empty() && of_traces > 1 && of_traces < all;
    writeln!(
        out,
        "clients fleet otlp: {}: {of_traces} scopes in {} spans with OpenTelemetry's identifiers, \
         and {} scopes of traces that are not sampled; their {} bytes are those that the program \
         counts",
        if holds { "passed" } else { "FAILED" },
        traced.spans(),
        all - of_traces,
        traced.bytes.values().sum::<i64>(),
    )?;
    for line in wrong {
        writeln!(out, "  {line}")?;
    }
    Ok(holds)
}
