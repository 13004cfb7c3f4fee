//! Checks a copy of a workspace with cargo, and returns the errors by place.

use super::copy::Copy;
use super::workspace::{SourcePackage, Sources, cargo};
use serde::Deserialize;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// An error of the compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompileError {
    pub(crate) message: String,
    /// The places of the error: files of the workspace, and bytes in the changed text.
    pub(crate) places: Vec<(PathBuf, usize)>,
}

#[derive(Deserialize)]
struct WireLine {
    reason: String,
    #[serde(default)]
    message: Option<WireMessage>,
}

#[derive(Deserialize)]
struct WireMessage {
    level: String,
    message: String,
    spans: Vec<WireSpan>,
}

#[derive(Deserialize)]
struct WireSpan {
    file_name: String,
    byte_start: usize,
    is_primary: bool,
    #[serde(default)]
    expansion: Option<Box<WireExpansion>>,
}

#[derive(Deserialize)]
struct WireExpansion {
    span: WireSpan,
}

/// Runs `cargo check` on a package of a copy, with this feature.
///
/// # Errors
///
/// Cargo cannot be started, or fails without an error of the compiler. The text is for the user.
pub(crate) fn check(
    copy: &Copy,
    sources: &Sources,
    (package, feature): (&SourcePackage, Option<&str>),
) -> Result<Vec<CompileError>, String> {
    let mut cargo = cargo("check");
    cargo.args(["--quiet", "--message-format=json", "--target-dir"]).arg(&sources.target_directory);
    if let Some(feature) = feature {
        cargo.args(["--features", feature]);
    }
    // With the oldest resolver, features are of the package in the working directory.
    let folder = package.manifest_path.parent().and_then(|folder| copy.place(folder));
    cargo.current_dir(folder.as_ref().unwrap_or(&copy.folder)).stdin(Stdio::null());
    let started = cargo.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.map_err(|error| format!("cargo cannot be started: {error}"))?;
    let notes = child.stderr.take();
    let notes =
        std::thread::spawn(move || notes.and_then(|notes| std::io::read_to_string(notes).ok()));
    let mut errors = Vec::new();
    for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
        let line = line.map_err(|error| format!("cargo cannot be read: {error}"))?;
        let Ok(WireLine { reason, message: Some(message) }) = serde_json::from_str(&line) else {
            continue;
        };
        if reason == "compiler-message" && message.level == "error" && !message.spans.is_empty() {
            errors.push(error(message, copy));
        }
    }
    let status = child.wait().map_err(|error| format!("cargo cannot be waited for: {error}"))?;
    let notes = notes.join().ok().flatten().unwrap_or_default();
    if !status.success() && errors.is_empty() {
        let first = notes.lines().find(|line| line.starts_with("error"));
        let first = first.or(notes.lines().next()).unwrap_or("without a message");
        let remedy = locked(first).map_or_else(String::new, |name| {
            format!(
                "\nmemreport's feature for this crate needs a newer version than the one in Cargo.lock: \
                 `cargo update {name}` may help"
            )
        });
        return Err(format!("`cargo check` of a copy failed: {first}{remedy}"));
    }
    Ok(errors)
}

/// Returns the crate of which cargo finds no version, by the first line of its error.
fn locked(error: &str) -> Option<&str> {
    let name = error.strip_prefix("error: failed to select a version for `")?;
    name.split_once('`').map(|(name, _)| name)
}

fn error(message: WireMessage, copy: &Copy) -> CompileError {
    let mut places = Vec::new();
    for span in message.spans.into_iter().filter(|span| span.is_primary) {
        let mut next = Some(span);
        while let Some(WireSpan { file_name, byte_start, expansion, .. }) = next {
            let file = copy.folder.join(Path::new(&file_name));
            places.extend(copy.original(&file).map(|file| (file, byte_start)));
            next = expansion.map(|expansion| expansion.span);
        }
    }
    CompileError { message: message.message, places }
}

#[cfg(test)]
mod tests {
    use super::locked;

    #[test]
    fn a_crate_without_a_version_is_named() {
        for (error, expected) in [
            ("error: failed to select a version for `bytes`.", Some("bytes")),
            ("error: failed to select a version for the requirement `a = \"^9\"`", None),
            ("error: could not compile `shop`", None),
        ] {
            assert_eq!(locked(error), expected, "{error}");
        }
    }
}
