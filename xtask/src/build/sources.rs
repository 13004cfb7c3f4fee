//! The sources of published crates, where cargo has unpacked them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::build;
use crate::failure::Failure;

/// Returns the folder to which cargo has unpacked a dependency of a package.
pub(crate) fn of_package(
    manifest: &Path,
    package: &str,
    features: &[&str],
) -> Result<PathBuf, Failure> {
    let mut cargo = build::cargo();
    cargo.args(["metadata", "--format-version=1"]).args(features).arg("--manifest-path");
    let output = cargo.arg(manifest).stderr(Stdio::inherit()).output()?;
    let found: Value = serde_json::from_slice(&output.stdout)?;
    let packages = found["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let package_found = packages.iter().find(|found| found["name"] == package);
    let manifest = package_found.and_then(|found| found["manifest_path"].as_str());
    let folder = manifest.and_then(|manifest| Path::new(manifest).parent());
    Ok(folder.ok_or_else(|| format!("cargo has no {package}"))?.to_path_buf())
}

/// Copies a folder, without what cargo built in it.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
