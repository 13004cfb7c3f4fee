//! `cargo xtask package`: packs what is published, in the order of publication, looks into each
//! package, and follows the guide in a project outside the workspace that depends on them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use crate::build;
use crate::failure::Failure;
use crate::scratch::Scratch;

/// The packages, each after those that it depends on, and their folders.
const PACKAGES: [(&str, &str); 6] = [
    ("memreport-derive", "memreport-derive"),
    ("memreport", "memreport"),
    ("memreport-analysis", "dmd-analysis"),
    ("memreport-dmd", "dmd"),
    ("about-memory", "about-memory"),
    ("memreport-fleet", "memreport-fleet"),
];

/// The files that each package must have.
const FILES: [&str; 4] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "Cargo.toml"];

/// The fields of a manifest that crates.io shows.
const FIELDS: [&str; 7] =
    ["description", "license", "repository", "readme", "keywords", "categories", "rust-version"];

/// The chapter whose first program the project runs.
const CHAPTER: &str = "docs/guide/src/getting-started.md";

/// Runs the check. Returns `false` if a package lacks something, or the project does not work.
pub(crate) fn run(out: &mut dyn Write) -> Result<bool, Failure> {
    let scratch = Scratch::new()?;
    let target = scratch.0.join("packed");
    pack(&target)?;
    let mut holds = true;
    let mut unpacked = Vec::new();
    for (package, _) in PACKAGES {
        let folder = unpack(&target, package, &scratch.0)?;
        let missing = missing(&folder)?;
        let files = count(&folder)?;
        match missing.as_slice() {
            [] => writeln!(out, "{package}: {files} files, complete")?,
            _ => writeln!(out, "{package}: FAILED: it has no {}", missing.join(", no "))?,
        }
        holds &= missing.is_empty();
        unpacked.push((package, folder));
    }
    let printed = follow_the_guide(&scratch.0, &unpacked)?;
    let is_tracked = printed.contains("explicit/index") && printed.contains("heap-allocated");
    writeln!(
        out,
        "a project outside the workspace: {}",
        if is_tracked { "its report has what the guide says" } else { "FAILED" }
    )?;
    Ok(holds && is_tracked)
}

fn pack(target: &Path) -> Result<(), Failure> {
    let mut cargo = build::cargo();
    // The packages depend on each other, and none is in a registry yet.
    cargo.args(["package", "--no-verify", "--allow-dirty", "--target-dir"]).arg(target);
    for (package, _) in PACKAGES {
        cargo.args(["--package", package]);
    }
    if cargo.status()?.success() { Ok(()) } else { Err("the packages could not be packed".into()) }
}

fn unpack(target: &Path, package: &str, into: &Path) -> Result<PathBuf, Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let file = target.join(format!("package/{package}-{version}.crate"));
    let status = Command::new("tar").arg("-xzf").arg(&file).arg("-C").arg(into).status()?;
    if !status.success() {
        return Err(format!("{} cannot be unpacked", file.display()).into());
    }
    Ok(into.join(format!("{package}-{version}")))
}

/// Returns the files and the fields of the manifest that a package lacks.
fn missing(folder: &Path) -> Result<Vec<&'static str>, Failure> {
    let manifest = fs::read_to_string(folder.join("Cargo.toml"))?;
    let has_field = |field: &str| {
        manifest.lines().any(|line| {
            line.strip_prefix(field).is_some_and(|rest| rest.trim_start().starts_with('='))
        })
    };
    let files = FILES.into_iter().filter(|file| !folder.join(file).is_file());
    let fields = FIELDS.into_iter().filter(|field| !has_field(field));
    let docs = ["[package.metadata.docs.rs]"].into_iter().filter(|part| !manifest.contains(part));
    Ok(files.chain(fields).chain(docs).collect())
}

fn count(folder: &Path) -> Result<usize, Failure> {
    let mut files = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        files += if entry.file_type()?.is_dir() { count(&entry.path())? } else { 1 };
    }
    Ok(files)
}

/// Builds a project with the first program of the guide, runs it under DMD, and returns its report.
fn follow_the_guide(scratch: &Path, packages: &[(&str, PathBuf)]) -> Result<String, Failure> {
    let chapter = fs::read_to_string(build::root().join(CHAPTER))?;
    let (dependencies, program) = (block(&chapter, "toml")?, block(&chapter, "rust")?);
    let project = scratch.join("project");
    fs::create_dir_all(project.join("src"))?;
    let patches: String = packages
        .iter()
        .map(|(package, folder)| {
            format!("{package} = {{ path = {:?} }}\n", folder.display().to_string())
        })
        .collect();
    let manifest = format!(
        "[package]\nname = \"follows\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n{dependencies}\n\
         [patch.crates-io]\n{patches}\n[workspace]\n"
    );
    fs::write(project.join("Cargo.toml"), manifest)?;
    fs::write(project.join("src/main.rs"), program)?;
    let run = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["run", "--quiet"])
        .current_dir(&project)
        .env("DMD", "1")
        .env("TMPDIR", scratch)
        .env("CARGO_TARGET_DIR", scratch.join("target"))
        .stdin(Stdio::null())
        .status()?;
    if !run.success() {
        return Err("the guide's first program does not run in a project of its own".into());
    }
    let report = Command::new("gzip").arg("-cd").arg(scratch.join("heap.json.gz")).output()?;
    Ok(String::from_utf8_lossy(&report.stdout).into_owned())
}

/// Returns the first block of a language in a text.
fn block<'text>(text: &'text str, language: &str) -> Result<&'text str, Failure> {
    let begin = format!("```{language}\n");
    let content = text.split_once(&begin).map(|(_, rest)| rest);
    let content = content.and_then(|rest| rest.split_once("```")).map(|(content, _)| content);
    content.ok_or_else(|| format!("{CHAPTER} has no {language}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_package_is_packed() {
        for (package, folder) in PACKAGES {
            let manifest = build::root().join(folder).join("Cargo.toml");
            let text = fs::read_to_string(manifest).expect("a manifest");
            assert!(text.contains(&format!("name = \"{package}\"")), "{package}");
        }
    }

    #[test]
    fn the_packages_require_exactly_their_version_of_each_other() {
        let manifest = fs::read_to_string(build::root().join("Cargo.toml")).expect("a manifest");
        let folders = PACKAGES.map(|(_, folder)| format!("path = \"{folder}\""));
        let is_family = |line: &&str| folders.iter().any(|folder| line.contains(folder));
        let required: Vec<&str> = manifest.lines().filter(is_family).collect();
        assert_eq!(required.len(), 5, "nobody depends on memreport-fleet: {required:?}");
        let exactly = concat!("version = \"=", env!("CARGO_PKG_VERSION"), "\"");
        assert!(required.iter().all(|line| line.contains(exactly)), "{required:?}");
    }

    #[test]
    fn the_documents_name_the_version_of_the_packages() {
        let version =
            format!("{}.{}", env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
        let guide = fs::read_dir(build::root().join("docs/guide/src")).expect("the guide");
        let pages = guide.flatten().map(|page| page.path()).filter(|page| page.is_file());
        let mut named = 0;
        for page in pages.chain(["README.md", "dmd/README.md"].map(|name| build::root().join(name)))
        {
            let text = fs::read_to_string(&page).expect("text");
            for part in ["memreport = ", "memreport-dmd = "] {
                for (_, rest) in
                    text.match_indices(part).map(|(at, _)| text.split_at(at + part.len()))
                {
                    let rest = rest.trim_start_matches("{ version = ");
                    // Some lines name a path instead.
                    let Some(found) =
                        rest.strip_prefix('"').filter(|text| text.starts_with(char::is_numeric))
                    else {
                        continue;
                    };
                    assert_eq!(found.split('"').next(), Some(&*version), "{}", page.display());
                    named += 1;
                }
            }
        }
        assert!(named > 5, "{named}");
    }

    #[test]
    fn what_a_package_lacks_is_named() {
        let folder = build::root().join("dmd-preload");
        let missing = missing(&folder).expect("it has a manifest");
        assert!(missing.contains(&"LICENSE-MIT") && missing.contains(&"keywords"), "{missing:?}");
        assert!(!missing.contains(&"description"), "{missing:?}");
    }
}
