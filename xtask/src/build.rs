//! Builds the workspace's own programs and returns their paths.

pub(crate) mod sources;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::Failure;

/// Returns the workspace's folder.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Returns a command for the cargo that runs this program.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Returns the folder of cargo's own files.
pub(crate) fn cargo_home() -> Result<PathBuf, Failure> {
    let home = std::env::var("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|_| std::env::var("HOME").map(|home| Path::new(&home).join(".cargo")));
    Ok(home.map_err(|_| "neither $CARGO_HOME nor $HOME is set")?)
}

/// Returns a command of the nightly toolchain.
pub(crate) fn nightly(words: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly"]).args(words).current_dir(root());
    command
}

/// Returns the target folder of this program.
pub(crate) fn target() -> Result<PathBuf, Failure> {
    let here = std::env::current_exe()?;
    let target = here.parent().and_then(Path::parent).ok_or("no target folder")?;
    Ok(target.to_path_buf())
}

/// Builds a program for release and returns its path.
pub(crate) fn release(package: &str, program: &str) -> Result<PathBuf, Failure> {
    executable(cargo().args(["build", "--release", "--package", package]), program)
}

/// Builds a program in the quicker test profile and returns its path.
pub(crate) fn debug(package: &str, program: &str) -> Result<PathBuf, Failure> {
    executable(cargo().args(["build", "--package", package]), program)
}

/// Runs a cargo build command with the program's name added, and returns the program's path.
pub(crate) fn executable(build: &mut Command, program: &str) -> Result<PathBuf, Failure> {
    let [path] = executables(build, [program])?;
    Ok(path)
}

/// Runs a cargo build command with the example's name added, and returns the program's path.
pub(crate) fn example(build: &mut Command, program: &str) -> Result<PathBuf, Failure> {
    let [path] = built(build, "--example", [program])?;
    Ok(path)
}

/// Runs a cargo build command with the names of programs added, and returns their paths.
pub(crate) fn executables<const N: usize>(
    build: &mut Command,
    programs: [&str; N],
) -> Result<[PathBuf; N], Failure> {
    built(build, "--bin", programs)
}

fn built<const N: usize>(
    build: &mut Command,
    kind: &str,
    programs: [&str; N],
) -> Result<[PathBuf; N], Failure> {
    for program in programs {
        build.args([kind, program]);
    }
    build.arg("--message-format=json-render-diagnostics");
    let output = build.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{} could not be built", programs.join(" and ")).into());
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<serde_json::Value> =
        messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut paths = programs.map(|_| PathBuf::new());
    for (program, path) in programs.iter().zip(&mut paths) {
        let mut of_program = messages.iter().filter(|line| line["target"]["name"] == **program);
        let executable = of_program.find_map(|line| line["executable"].as_str());
        *path = executable.ok_or_else(|| format!("cargo built no {program}"))?.into();
    }
    Ok(paths)
}
