//! `cargo memreport init`: adds memreport to the packages of a program.

mod source;

use super::build::{BuildArgs, CARGO};
use super::error::CargoError;
use super::workspace::{Package, Workspace};
use crate::command::annotate::source::manifest::{self, Origin, is_clone};
use crate::context::Context;
use crate::error::Failure;
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `cargo memreport init`
#[derive(Args, Debug)]
#[command(after_help = "\
It adds the dependencies `memreport` and `memreport-dmd`, both optional, the feature `memreport` that enables them, and to each \
binary of the package the line that declares the allocator, and one reporter, both behind the feature. What is there already \
stays as it is, and so does the format. If something cannot be added, nothing is changed.

Examples:
  cargo memreport init
  cargo memreport init --package shop --path ../memreport    by a clone of memreport")]
pub(crate) struct InitArgs {
    /// Depend on the packages in this clone of memreport, not on published ones
    #[arg(long, value_name = "FOLDER")]
    path: Option<PathBuf>,
    /// Depend on published packages, also if this program was built from a clone
    #[arg(long, conflicts_with = "path")]
    published: bool,
    /// Print what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// The package, by default that of this folder
    #[arg(short, long, value_name = "NAME", help_heading = CARGO)]
    package: Option<String>,
    /// The manifest, if not in this folder or above
    #[arg(long, value_name = "FILE", help_heading = CARGO)]
    manifest_path: Option<PathBuf>,
}

/// A file with its new text and the additions in words.
struct Edit {
    file: PathBuf,
    text: String,
    additions: Vec<String>,
}

impl InitArgs {
    /// Changes the manifests and sources.
    pub(super) fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let origin = self.origin()?;
        let build = BuildArgs::of_manifest(self.manifest_path)?;
        let workspace = Workspace::read(&build)?;
        let packages = workspace.chosen(self.package.as_deref())?;
        let with_program = |package: &&&Package| package.targets("bin").next().is_some();
        let packages: Vec<&Package> = packages.iter().filter(with_program).copied().collect();
        if packages.is_empty() {
            return Err(CargoError::NoProgram(
                "binary: only a program declares an allocator; a library needs `cargo add memreport` alone".into(),
            )
            .into());
        }
        let mut edits = Vec::new();
        for package in &packages {
            edits.extend(edits_of(package, &origin)?);
        }
        for Edit { file, text, additions } in edits {
            let shown = shown(&file);
            if additions.is_empty() {
                writeln!(context.out, "{}: nothing to add", shown.display())?;
                continue;
            }
            if !self.dry_run {
                let failed =
                    |error: std::io::Error| CargoError::Init(file.clone(), error.to_string());
                fs::write(&file, text).map_err(failed)?;
            }
            let added = if self.dry_run { "would add" } else { "added" };
            writeln!(context.out, "{}: {added} {}", shown.display(), additions.join(", "))?;
        }
        writeln!(
            context.out,
            "\n`cargo memreport run` builds the program with it, and shows its memory."
        )?;
        Ok(ExitCode::SUCCESS)
    }

    /// Returns where the packages come from: the flags say it, or the clone that this program was
    /// built from, if it is still there.
    fn origin(&self) -> Result<Origin, CargoError> {
        if let Some(folder) = &self.path {
            let folder = fs::canonicalize(folder)
                .map_err(|error| CargoError::Init(folder.clone(), error.to_string()))?;
            if !is_clone(&folder) {
                return Err(CargoError::Init(folder, "no clone of memreport".to_owned()));
            }
            return Ok(Origin::Clone(folder));
        }
        Ok(if self.published { Origin::Published } else { Origin::of_this_program() })
    }
}

fn edits_of(package: &Package, origin: &Origin) -> Result<Vec<Edit>, CargoError> {
    let mut edits = vec![edit(&package.manifest_path, |text| manifest::edit(text, origin))?];
    for target in package.targets("bin") {
        edits.push(edit(&target.src_path, |text| source::edit(text, &target.name))?);
    }
    Ok(edits)
}

fn edit(
    file: &Path,
    change: impl FnOnce(&str) -> Result<(String, Vec<String>), String>,
) -> Result<Edit, CargoError> {
    let failed = |problem| CargoError::Init(shown(file), problem);
    let text = fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
    let (text, additions) = change(&text).map_err(failed)?;
    Ok(Edit { file: file.to_owned(), text, additions })
}

/// Returns the path from the working directory, if it is below.
fn shown(file: &Path) -> PathBuf {
    let here = std::env::current_dir().ok();
    let below = here.and_then(|here| file.strip_prefix(here).ok());
    below.unwrap_or(file).to_owned()
}
