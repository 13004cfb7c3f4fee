//! The reference package of protocol buffers reads our OpenTelemetry profiles: their totals are the
//! dump's.

use std::io::Write;
use std::process::Command;

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
        let file = folder.join("profile.otlp");
        let mut export = Command::new(&bench.fleet);
        export.arg("export").arg(dump).args(["--to", "otlp", "--service", "shop", "-o"]).arg(&file);
        output(&mut export)?;
        let found = json(Command::new(&bench.python).args(["-c", READER]).arg(&file))?;
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
    Ok(holds && !dumps.is_empty())
}
