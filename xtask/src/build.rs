//! Builds the workspace's own programs and returns their paths.

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
    build.args(["--bin", program, "--message-format=json-render-diagnostics"]);
    let output = build.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{program} could not be built").into());
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let executable = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find_map(|line| {
            let is_it = line["target"]["name"] == program;
            line["executable"].as_str().filter(|_| is_it).map(PathBuf::from)
        });
    executable.ok_or_else(|| format!("cargo built no {program}").into())
}
