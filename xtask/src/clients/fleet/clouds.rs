//! Questions about a dataset in a store have the answers of the same files in a folder, and files
//! are fetched once; an agent ships to the same stores. The stores are moto (S3) and azurite
//! (Azure).

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::server::{Server, free_port};
use super::store::Running;
use super::{Bench, json, output};
use crate::failure::Failure;
use crate::on_path;

const AZURE: &str = include_str!("clouds/azure.py");

/// The rounds of the agent.
const ROUNDS: usize = 3;

/// A store that runs, with a dataset below `data` of its bucket `fleet`.
struct Cloud<'s> {
    name: &'static str,
    scheme: &'static str,
    set_variables: &'s dyn Fn(&mut Command),
}

/// Returns whether every store that is installed has equal answers.
pub(super) fn run(bench: &Bench, out: &mut dyn Write) -> Result<bool, Failure> {
    if !bench.has_module("clouds", ["duckdb", "duckdb"], out)? {
        return Ok(true);
    }
    let dataset = bench.folder.join("clouds/dataset");
    let mut generate = Command::new(Bench::example("generate_fleet")?);
    generate.args(["--hosts", "6", "--days", "3", "--reports", "1", "--dumps", "1"]);
    output(generate.arg("--output").arg(&dataset))?;
    let mut holds = true;
    if bench.has_module("s3", ["moto.server", "'moto[server]'"], out)?
        && bench.has_module("s3", ["boto3", "boto3"], out)?
    {
        let mut server = Server::start_moto(bench)?;
        server.load(&dataset)?;
        let set_variables = |command: &mut Command| server.set_variables(command);
        let cloud = Cloud { name: "s3", scheme: "s3", set_variables: &set_variables };
        holds &= cloud.check(bench, &dataset, out)?;
    }
    holds &= azure(bench, &dataset, out)?;
    writeln!(
        out,
        "clients fleet gs: not run: no emulator of Google's store has its XML interface, except in \
         Go (PyPI's gcp-storage-emulator answers 501 to a list, and has no ETag)"
    )?;
    Ok(holds)
}

fn azure(bench: &Bench, dataset: &Path, out: &mut dyn Write) -> Result<bool, Failure> {
    let Some(program) =
        bench.azurite.clone().or_else(|| on_path::find(&["azurite-blob"], "none").ok())
    else {
        writeln!(
            out,
            "clients fleet az: not run: azurite-blob is missing (npm install azurite; --azurite \
             names the program)"
        )?;
        return Ok(true);
    };
    let module = ["azure.storage.blob", "azure-storage-blob"];
    if !bench.has_module("az", module, out)? {
        return Ok(true);
    }
    let port = free_port()?;
    let mut command = Command::new(program);
    command.args([
        "--silent",
        "--skipApiVersionCheck",
        "--disableTelemetry",
        "--inMemoryPersistence",
    ]);
    command.args(["--blobPort", &port.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    let _running = Running(command.spawn()?);
    let begin = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if begin.elapsed() > Duration::from_secs(60) {
            return Err("azurite does not start".into());
        }
        thread::sleep(Duration::from_millis(100));
    }
    let mut load = Command::new(&bench.python);
    output(load.args(["-c", AZURE, &port.to_string()]).arg(dataset))?;
    let set_variables = |command: &mut Command| {
        let address = format!("http://127.0.0.1:{port}");
        command.env("AZURE_STORAGE_USE_EMULATOR", "true").env("AZURE_ALLOW_HTTP", "true");
        command.env("AZURITE_BLOB_STORAGE_URL", address);
    };
    let cloud = Cloud { name: "az", scheme: "az", set_variables: &set_variables };
    cloud.check(bench, dataset, out)
}

impl Cloud<'_> {
    fn check(&self, bench: &Bench, dataset: &Path, out: &mut dyn Write) -> Result<bool, Failure> {
        let address = format!("{}://fleet/data", self.scheme);
        let local = json(&mut self.query(bench, "all", &dataset.to_string_lossy()))?;
        let ask = || -> Result<(Value, String), Failure> {
            let output = self.query(bench, "all", &address).stderr(Stdio::piped()).output()?;
            let notes = String::from_utf8_lossy(&output.stderr).into_owned();
            if !output.status.success() {
                return Err(format!("{}: {notes}", self.name).into());
            }
            Ok((serde_json::from_slice(&output.stdout)?, notes))
        };
        let (first, fetched) = ask()?;
        let (second, unchanged) = ask()?;
        let questions = local.as_object().map_or(0, serde_json::Map::len);
        let is_fetched_once =
            !fetched.contains(": fetched 0 ") && unchanged.contains(": fetched 0 ");
        let (taken, shipped) = self.ship(bench)?;
        let holds = local == first
            && first == second
            && questions > 1
            && is_fetched_once
            && taken > 0
            && taken == shipped;
        writeln!(
            out,
            "clients fleet {}: {}: {questions} questions {}, asked of the store and of the folder; then {}; an \
             agent took {taken} reports, and {shipped} are in the store",
            self.name,
            if holds { "passed" } else { "FAILED" },
            if local == first { "equal" } else { "NOT EQUAL" },
            unchanged.trim().split(';').next().unwrap_or_default(),
        )?;
        Ok(holds)
    }

    fn query(&self, bench: &Bench, question: &str, dataset: &str) -> Command {
        let mut command = Command::new(&bench.fleet);
        command.args(["query", question, dataset, "--engine", "duckdb", "--format", "json"]);
        command
            .args(["--python", &bench.python])
            .arg("--cache")
            .arg(bench.folder.join("clouds/cache"));
        (self.set_variables)(&mut command);
        command
    }

    /// Has an agent ship snapshots of a program. Returns the numbers of reports that were taken,
    /// and that are in the store.
    fn ship(&self, bench: &Bench) -> Result<(usize, usize), Failure> {
        let folder = bench.folder.join("clouds").join(self.name);
        let sockets = folder.join("sockets");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&sockets)?;
        let mut program = Command::new(Bench::example("counted_program")?);
        program.env("XDG_RUNTIME_DIR", &sockets).env("DMD", "1").stdin(Stdio::piped());
        let _program = Running(program.spawn()?);
        let begin = Instant::now();
        while fs::read_dir(&sockets)?.next().is_none() {
            if begin.elapsed() > Duration::from_secs(60) {
                return Err("the program does not serve".into());
            }
            thread::sleep(Duration::from_millis(50));
        }
        let address = format!("{}://fleet/shipped", self.scheme);
        let mut agent = Command::new(&bench.fleet);
        agent.args(["agent", "--every", "200ms", "--batch", "300ms", "--max-share", "100"]);
        agent.args(["--verbose", "--to", &address, "--rounds", &ROUNDS.to_string()]);
        agent.arg("--spool").arg(folder.join("spool")).arg("--sockets").arg(&sockets);
        (self.set_variables)(&mut agent);
        let ended = agent.stderr(Stdio::piped()).output()?;
        let notes = String::from_utf8_lossy(&ended.stderr);
        let taken = notes.lines().filter(|line| line.starts_with("taken ")).count();
        let question = folder.join("ids.sql");
        fs::write(&question, include_str!("store/ids.sql"))?;
        let ids = json(&mut self.query(bench, &question.to_string_lossy(), &address))?;
        Ok((taken, ids.as_array().map_or(0, Vec::len)))
    }
}
