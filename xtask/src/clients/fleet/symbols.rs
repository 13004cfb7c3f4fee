//! Production has no debug files: an agent ships stacks of a stripped program to S3 (moto), and
//! `symbols` looks them up there with the server of the debuginfod protocol (elfutils).

use std::fs;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::server::{Server, free_port};
use super::store::Running;
use super::{Bench, json, output};
use crate::clients::http;
use crate::failure::Failure;
use crate::on_path;

/// The function of the program that allocates what no reporter counts.
const SITE: &str = "counted_program::main";

/// Returns whether the biggest unreported place has its function after the look-up alone, and each
/// stack is looked up once.
pub(super) fn run(bench: &Bench, out: &mut dyn Write) -> Result<bool, Failure> {
    let programs = [("debuginfod", "debuginfod"), ("objcopy", "binutils"), ("strip", "binutils")];
    for (name, package) in programs {
        if let Err(words) = on_path::find(&[name], package) {
            writeln!(out, "clients fleet symbols: not run: {words}")?;
            return Ok(true);
        }
    }
    for module in [["duckdb", "duckdb"], ["moto.server", "'moto[server]'"], ["boto3", "boto3"]] {
        if !bench.has_module("symbols", module, out)? {
            return Ok(true);
        }
    }
    let folder = bench.folder.join("symbols");
    let debug = folder.join("debug");
    fs::create_dir_all(&debug)?;
    let program = strip(&Bench::example("counted_program")?, &folder, &debug)?;
    let store = Server::start_moto(bench)?;
    ship(bench, &store, &program, &folder)?;
    // The central machine has neither the program nor its debug file.
    fs::remove_file(&program)?;
    let before = unreported(bench, &store)?;
    let port = free_port()?;
    let _server = start_debuginfod(&debug, port)?;
    let first = look_up(bench, &store, &folder, port)?;
    let second = look_up(bench, &store, &folder, port)?;
    let after = unreported(bench, &store)?;
    let has_site = |rows: &Value| {
        let sites = rows.as_array().into_iter().flatten();
        sites.filter_map(|row| row["site"].as_str()).any(|site| site.starts_with(SITE))
    };
    let bytes = |rows: &Value| -> i64 {
        let rows = rows.as_array().into_iter().flatten();
        rows.filter_map(|row| row["bytes_of_all_dumps"].as_i64()).sum()
    };
    let holds = !has_site(&before)
        && has_site(&after)
        && bytes(&before) == bytes(&after)
        && first.contains("fetched the debug file")
        && !second.contains("fetched the debug file")
        && second.contains(", 0 now,");
    let last = |text: &str| text.trim().lines().last().unwrap_or_default().to_owned();
    writeln!(
        out,
        "clients fleet symbols: {}: {}; again: {}; {} unreported bytes before and {} after, at {}",
        if holds { "passed" } else { "FAILED" },
        last(&first),
        last(&second),
        bytes(&before),
        bytes(&after),
        after[0]["site"],
    )?;
    Ok(holds)
}

/// Copies a program without debug information and symbols, which go to a file of their own.
fn strip(program: &Path, folder: &Path, debug: &Path) -> Result<PathBuf, Failure> {
    let stripped = folder.join("counted_program");
    let mut keep = Command::new("objcopy");
    keep.arg("--only-keep-debug").arg(program).arg(debug.join("counted_program.debug"));
    output(&mut keep)?;
    output(Command::new("strip").arg("-o").arg(&stripped).arg(program))?;
    Ok(stripped)
}

/// Has an agent ship a dump of the program.
fn ship(bench: &Bench, store: &Server, program: &Path, folder: &Path) -> Result<(), Failure> {
    let sockets = folder.join("sockets");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&sockets)?;
    let mut command = Command::new(program);
    command.env("XDG_RUNTIME_DIR", &sockets).env("DMD", "--stacks=full").stdin(Stdio::piped());
    let _program = Running(command.spawn()?);
    let begin = Instant::now();
    while fs::read_dir(&sockets)?.next().is_none() {
        if begin.elapsed() > Duration::from_secs(60) {
            return Err("the program does not serve".into());
        }
        thread::sleep(Duration::from_millis(50));
    }
    let mut agent = Command::new(&bench.fleet);
    agent.args(["agent", "--rounds", "1", "--dump-every", "1", "--to", "s3://fleet/symbols"]);
    agent.arg("--spool").arg(folder.join("spool")).arg("--sockets").arg(&sockets);
    store.set_variables(&mut agent);
    output(&mut agent).map(|_| ())
}

/// Starts debuginfod on a folder, and waits until it has found the file in it.
fn start_debuginfod(debug: &Path, port: u16) -> Result<Running, Failure> {
    let mut command = Command::new("debuginfod");
    command.args(["-p", &port.to_string(), "-d", ":memory:", "-F"]).arg(debug);
    command.env_remove("DEBUGINFOD_URLS").stdout(Stdio::null()).stderr(Stdio::null());
    let server = Running(command.spawn()?);
    let begin = Instant::now();
    let address = format!("127.0.0.1:{port}");
    let has_file = |metrics: String| metrics.contains("found_debuginfo_total{source=\"files\"} 1");
    while !http::get(&address, "/metrics").is_ok_and(has_file) {
        if begin.elapsed() > Duration::from_secs(60) {
            return Err("debuginfod does not find the debug file".into());
        }
        thread::sleep(Duration::from_millis(200));
    }
    Ok(server)
}

/// Looks up the stacks, and returns the notes.
fn look_up(bench: &Bench, store: &Server, folder: &Path, port: u16) -> Result<String, Failure> {
    let mut command = Command::new(&bench.fleet);
    command.args(["symbols", "s3://fleet/symbols"]);
    command.args(["--debuginfod", &format!("http://127.0.0.1:{port}")]);
    command.arg("--debuginfod-cache").arg(folder.join("debug-cache"));
    command.arg("--cache").arg(bench.folder.join("cache"));
    store.set_variables(&mut command);
    let done = command.output()?;
    let notes = String::from_utf8_lossy(&done.stderr).into_owned();
    if done.status.success() { Ok(notes) } else { Err(format!("symbols: {notes}").into()) }
}

fn unreported(bench: &Bench, store: &Server) -> Result<Value, Failure> {
    let mut command = Command::new(&bench.fleet);
    command.args(["query", "unreported", "s3://fleet/symbols", "--format", "json"]);
    command.args(["--engine", "duckdb", "--python", &bench.python]);
    command.arg("--cache").arg(bench.folder.join("cache"));
    store.set_variables(&mut command);
    json(&mut command)
}
