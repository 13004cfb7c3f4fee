//! `cargo xtask clients exports [NAME] [--tools DIR]`: opens every export in its real client.
//!
//! The client must show the bytes of the dump or the recording.

mod dh_view;
mod firefox_profiler;
mod flame_graph;
mod ms_print;
mod pprof;
mod schema;
mod speedscope;
mod subject;
mod tools;
mod trace_viewer;

use std::cell::OnceCell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::webdriver::{Browser, chromium};
use crate::failure::Failure;
use crate::scratch::Scratch;
use subject::{Leaking, Subject};
use tools::Tools;

/// A program that opens exports.
struct Client {
    name: &'static str,
    /// Checks that the client can run; the error names the missing program.
    needs: fn(&Tools) -> Result<(), String>,
    /// Compares the client's numbers with the dump's; the error states the difference.
    check: fn(&Bench, &Subject) -> Result<(), Failure>,
}

const CLIENTS: &[Client] = &[
    firefox_profiler::CLIENT,
    trace_viewer::CLIENT,
    dh_view::CLIENT,
    pprof::CLIENT,
    speedscope::CLIENT,
    ms_print::CLIENT,
    flame_graph::CLIENT,
];

/// The state that all checks share.
struct Bench {
    tools: Tools,
    about_memory: PathBuf,
    folder: PathBuf,
    browser: OnceCell<Browser>,
}

impl Bench {
    /// Exports a dump, with these options behind the format.
    fn export(
        &self,
        dumps: &[&Subject],
        format: &str,
        options: &[&str],
    ) -> Result<PathBuf, Failure> {
        let names: Vec<&str> =
            dumps.iter().map(|dump| dump.name).chain(options.iter().copied()).collect();
        let file = self.folder.join(format!("{}.{format}", names.join("-").replace("--", "")));
        let mut export = Command::new(&self.about_memory);
        export.arg("export").args(dumps.iter().map(|dump| &dump.file)).args(["--to", format]);
        run(export.args(options).arg("-o").arg(&file))?;
        Ok(file)
    }

    /// Returns the browser, which all checks share.
    fn browser(&self) -> Result<&Browser, Failure> {
        if let Some(browser) = self.browser.get() {
            return Ok(browser);
        }
        let browser = {
            let programs = chromium::find()?;
            Browser::start(&self.folder, |folder| chromium::start(&programs, folder))?
        };
        Ok(self.browser.get_or_init(|| browser))
    }
}

/// The timeout of a program in seconds. The first `go tool pprof` builds itself, which takes
/// minutes.
const TIMEOUT: &str = "300";

/// Runs a program to its end within the timeout. Returns its output, or an error if it fails.
fn run(command: &mut Command) -> Result<String, Failure> {
    let mut patient = Command::new("timeout");
    patient.arg(TIMEOUT).arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    patient.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        patient.current_dir(folder);
    }
    let Output { status, stdout, stderr } = patient.output()?;
    if !status.success() {
        let message = [stdout, stderr].concat();
        return Err(format!("{command:?}: {status}: {}", String::from_utf8_lossy(&message)).into());
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// Returns an error unless both are equal.
fn equal<T: PartialEq + std::fmt::Debug>(
    what: &str,
    shown: &T,
    expected: &T,
) -> Result<(), Failure> {
    if shown == expected {
        return Ok(());
    }
    Err(format!("{what}: it shows {shown:?}, the file has {expected:?}").into())
}

/// Runs the checks of one client, or of all. Returns `false` when one of them fails.
pub(crate) fn run_clients(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let (name, folder) = match args {
        [] => (None, None),
        [name] => (Some(*name), None),
        ["--tools", folder] => (None, Some(*folder)),
        [name, "--tools", folder] | ["--tools", folder, name] => (Some(*name), Some(*folder)),
        _ => return Err("usage: cargo xtask clients exports [NAME] [--tools DIR]".into()),
    };
    let chosen: Vec<&Client> =
        CLIENTS.iter().filter(|client| name.is_none_or(|name| name == client.name)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
        return Err(format!("no client is called so; there are: {}", names.join(", ")).into());
    }
    let tools = Tools::new(folder);
    let mut ready = Vec::new();
    for client in chosen {
        match (client.needs)(&tools) {
            Ok(()) => ready.push(client),
            Err(words) => writeln!(out, "clients exports: {}: not run: {words}", client.name)?,
        }
    }
    if ready.is_empty() {
        return Ok(true);
    }
    let scratch = Scratch::new()?;
    let bench = bench(tools, &scratch.0)?;
    let leaking = Leaking::start(&scratch.0)?;
    let mut subjects = subject::take(&scratch.0)?;
    subjects.push(leaking.recorded()?);
    let mut all_hold = true;
    for client in ready {
        let mut failures = 0;
        for subject in &subjects {
            if let Err(error) = (client.check)(&bench, subject) {
                failures += 1;
                writeln!(out, "clients exports: {}: {}: {error}", client.name, subject.name)?;
            }
        }
        all_hold &= failures == 0;
        let count = subjects.len();
        let verdict = match failures {
            0 => format!(
                "opens the exports of {count} dumps and recordings and finds their bytes, to the byte"
            ),
            _ => format!("FAILED with {failures} of {count} dumps and recordings"),
        };
        writeln!(out, "clients exports: {}: {verdict}", client.name)?;
    }
    Ok(all_hold)
}

fn bench(tools: Tools, folder: &Path) -> Result<Bench, Failure> {
    let about_memory = subject::dev("about-memory", "about-memory")?;
    Ok(Bench { tools, about_memory, folder: folder.to_owned(), browser: OnceCell::new() })
}

pub(crate) use pprof::run_service;
