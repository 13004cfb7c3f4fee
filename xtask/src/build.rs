//! Builds the workspace's own programs, and finds them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Failure;

/// The workspace's folder.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Cargo, as it was called.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Builds a program for release, and says where it is.
pub(crate) fn release(package: &str, program: &str) -> Result<PathBuf, Failure> {
    let mut build = cargo();
    build.args([
        "build",
        "--release",
        "--package",
        package,
        "--bin",
        program,
        "--message-format=json-render-diagnostics",
    ]);
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
