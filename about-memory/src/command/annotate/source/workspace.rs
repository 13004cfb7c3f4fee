//! Reads the packages of a workspace, as far as changes to their source need them.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The feature that `cargo memreport init` adds, and that all commands enable.
pub(crate) const FEATURE: &str = "memreport";

/// The packages of a workspace, with their folders.
#[derive(Debug, Deserialize)]
pub(crate) struct Sources {
    pub(crate) packages: Vec<SourcePackage>,
    pub(crate) workspace_root: PathBuf,
    pub(crate) target_directory: PathBuf,
}

/// A package whose source may change.
#[derive(Debug, Deserialize)]
pub(crate) struct SourcePackage {
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
    targets: Vec<SourceTarget>,
    features: BTreeMap<String, Vec<String>>,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct SourceTarget {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    #[serde(default)]
    kind: Option<String>,
    optional: bool,
    #[serde(default)]
    rename: Option<String>,
}

/// A crate of the workspace: its name in paths, and its first file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceCrate {
    pub(crate) name: String,
    pub(crate) root: PathBuf,
    /// The number of its package.
    pub(crate) package: usize,
}

/// The way in which a package depends on memreport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gate {
    /// It does not.
    Missing,
    /// Always.
    Open,
    /// With this feature of the package.
    Feature(String),
}

impl Sources {
    /// Reads the workspace of a manifest, or of the current folder.
    ///
    /// # Errors
    ///
    /// Cargo cannot be started, fails, or prints something else. The text is for the user.
    pub(crate) fn read(manifest: Option<&Path>) -> Result<Self, String> {
        let mut cargo = cargo("metadata");
        cargo.args(["--no-deps", "--format-version", "1"]);
        if let Some(manifest) = manifest {
            cargo.arg("--manifest-path").arg(manifest);
        }
        let output = cargo.stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("cargo cannot be started: {error}"))?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr);
            let first = reason.lines().next().unwrap_or_default().trim_start_matches("error: ");
            return Err(format!(
                "the program's source is not found: {first}; run this in the folder of its package, or name its \
                 Cargo.toml with --manifest-path"
            ));
        }
        serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("the output of `cargo metadata` is not understood: {error}"))
    }

    /// Returns the crates that a program may consist of: all libraries, and the binaries and
    /// examples with its name, or else all binaries.
    pub(crate) fn crates_of(&self, program: &str) -> Vec<SourceCrate> {
        let all = self.packages.iter().zip(0..).flat_map(|(package, number)| {
            package.targets.iter().map(move |target| (number, target))
        });
        let all: Vec<(usize, &SourceTarget)> = all.collect();
        let is_program = |target: &SourceTarget| target.is(&["bin", "example", "test", "bench"]);
        let is_named = |target: &SourceTarget| is_program(target) && is_named(target, program);
        let has_named = all.iter().any(|(_, target)| is_named(target));
        let is_part = |target: &SourceTarget| {
            target.is(&["lib", "rlib", "dylib", "cdylib", "staticlib"])
                || if has_named { is_named(target) } else { target.is(&["bin"]) }
        };
        let parts = all.into_iter().filter(|(_, target)| is_part(target));
        let parts = parts.map(|(package, target)| SourceCrate {
            name: target.name.replace('-', "_"),
            root: target.src_path.clone(),
            package,
        });
        parts.collect()
    }
}

/// Returns whether a program's file is of a target. Tests have a hash behind their name.
fn is_named(target: &SourceTarget, program: &str) -> bool {
    let (own, program) = (target.name.replace('-', "_"), program.replace('-', "_"));
    let is_hash = |text: &str| text.len() == 16 && text.bytes().all(|c| c.is_ascii_hexdigit());
    let rest = program.strip_prefix(&own);
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('_').is_some_and(is_hash))
}

impl SourceTarget {
    fn is(&self, kinds: &[&str]) -> bool {
        self.kind.iter().any(|own| kinds.contains(&&**own))
    }
}

impl SourcePackage {
    /// Returns how the package depends on memreport.
    pub(crate) fn gate(&self) -> Gate {
        let is_it = |dependency: &&Dependency| {
            dependency.name == "memreport"
                && dependency.rename.is_none()
                && dependency.kind.is_none()
        };
        let Some(dependency) = self.dependencies.iter().find(is_it) else { return Gate::Missing };
        if !dependency.optional {
            return Gate::Open;
        }
        let enables = |values: &Vec<String>| {
            values.iter().any(|value| value == "dep:memreport" || value == "memreport")
        };
        let is_own = self.features.get(FEATURE).is_some_and(enables);
        let other = || self.features.iter().find(|(_, values)| enables(values));
        let name = if is_own { None } else { other().map(|(name, _)| name.clone()) };
        Gate::Feature(name.unwrap_or_else(|| FEATURE.to_owned()))
    }

    /// Returns whether the package depends on another of this name.
    pub(crate) fn depends_on(&self, name: &str) -> bool {
        let is_it = |of: &Dependency| of.name == name && of.kind.is_none();
        self.dependencies.iter().any(is_it)
    }
}

/// Returns a command of cargo.
pub(crate) fn cargo(command: &str) -> Command {
    // Cargo names itself in this variable.
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(program);
    cargo.arg(command);
    cargo
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(dependencies: &str, features: &str) -> Sources {
        let text = format!(
            r#"{{"packages":[{{"name":"shop","manifest_path":"/shop/Cargo.toml","features":{{{features}}},
              "dependencies":[{dependencies}],"targets":[
              {{"name":"shop","kind":["lib"],"src_path":"/shop/src/lib.rs"}},
              {{"name":"shop-till","kind":["bin"],"src_path":"/shop/src/bin/till.rs"}},
              {{"name":"stock","kind":["bin"],"src_path":"/shop/src/bin/stock.rs"}}]}}],
              "workspace_root":"/shop","target_directory":"/shop/target"}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_program_is_of_its_binary_and_of_all_libraries() {
        let sources = sources("", "");
        for (program, expected) in [
            ("shop-till", "shop shop_till"),
            ("stock-0123456789abcdef", "shop stock"),
            ("other", "shop shop_till stock"),
        ] {
            let crates = sources.crates_of(program).into_iter().map(|of| of.name);
            assert_eq!(crates.collect::<Vec<_>>().join(" "), expected, "{program}");
        }
    }

    #[test]
    fn the_gate_is_the_feature_that_enables_memreport() {
        let memreport = |optional| format!(r#"{{"name":"memreport","optional":{optional}}}"#);
        let gate =
            |dependencies: &str, features: &str| sources(dependencies, features).packages[0].gate();
        assert_eq!(gate("", ""), Gate::Missing);
        assert_eq!(gate(&memreport(false), ""), Gate::Open);
        assert_eq!(
            gate(&memreport(true), r#""a":[],"heap":["dep:memreport"]"#),
            Gate::Feature("heap".to_owned())
        );
        assert_eq!(
            gate(&memreport(true), r#""memreport":["dep:memreport"],"all":["memreport"]"#),
            Gate::Feature("memreport".to_owned())
        );
        let dev = r#"{"name":"memreport","optional":false,"kind":"dev"}"#;
        assert_eq!(gate(dev, ""), Gate::Missing);
    }
}
