//! Reads the packages and programs of the workspace from `cargo metadata`.

use super::build::BuildArgs;
use super::error::CargoError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) use crate::command::annotate::source::workspace::FEATURE;

/// The packages of a workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    pub(crate) packages: Vec<Package>,
    #[serde(default)]
    workspace_default_members: Vec<String>,
    workspace_root: PathBuf,
    #[serde(skip)]
    current: Option<PathBuf>,
}

/// A package of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) targets: Vec<Target>,
    pub(crate) default_run: Option<String>,
    pub(crate) features: BTreeMap<String, Vec<String>>,
}

/// A target of a package.
#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
    pub(crate) src_path: PathBuf,
}

#[derive(Deserialize)]
struct WireProject {
    root: PathBuf,
}

impl Target {
    pub(crate) fn is(&self, kind: &str) -> bool {
        self.kind.iter().any(|own| own == kind)
    }
}

impl Package {
    /// Returns the folder of the manifest.
    pub(crate) fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new("."))
    }

    pub(crate) fn has_feature(&self) -> bool {
        self.features.contains_key(FEATURE)
    }

    /// Returns the targets of a kind.
    pub(crate) fn targets(&self, kind: &str) -> impl Iterator<Item = &Target> {
        self.targets.iter().filter(move |target| target.is(kind))
    }
}

impl Workspace {
    /// Reads the workspace of the manifest that the flags name, or of the current folder.
    pub(crate) fn read(args: &BuildArgs) -> Result<Self, CargoError> {
        let mut metadata = args.cargo("metadata");
        metadata.args(["--no-deps", "--format-version", "1"]);
        let mut workspace: Workspace = json(metadata, "metadata")?;
        let project: WireProject = json(args.cargo("locate-project"), "locate-project")?;
        workspace.current = Some(project.root);
        Ok(workspace)
    }

    /// Returns the packages that cargo would choose: the named one, the one of the current
    /// folder, or the default members.
    pub(crate) fn chosen(&self, name: Option<&str>) -> Result<Vec<&Package>, CargoError> {
        if let Some(name) = name {
            let found = self.packages.iter().find(|package| package.name == name);
            let names = || self.packages.iter().map(|package| package.name.clone()).collect();
            return found
                .map(|package| vec![package])
                .ok_or_else(|| CargoError::NoPackage(name.to_owned(), names()));
        }
        let is_current = |package: &&Package| Some(&package.manifest_path) == self.current.as_ref();
        if let Some(current) = self.packages.iter().find(is_current) {
            return Ok(vec![current]);
        }
        let is_default = |package: &&Package| {
            // Cargo before 1.71 does not list them.
            self.workspace_default_members.is_empty()
                || self.workspace_default_members.contains(&package.id)
        };
        Ok(self.packages.iter().filter(is_default).collect())
    }

    /// Returns whether cargo resolves features by its first resolver, which enables features on the
    /// command line for one package alone.
    pub(crate) fn has_resolver_1(&self) -> bool {
        // Cargo has read the same file.
        let text = std::fs::read_to_string(self.workspace_root.join("Cargo.toml"));
        text.is_ok_and(|text| declares_resolver_1(&text))
    }

    /// Returns the package with this id.
    pub(crate) fn of_id(&self, id: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.id == id)
    }
}

/// Returns whether the manifest of a workspace's root declares the first resolver, or none.
fn declares_resolver_1(manifest: &str) -> bool {
    let Ok(manifest) = manifest.parse::<toml_edit::DocumentMut>() else { return false };
    let value = |table: &str, key: &str| {
        manifest.get(table).and_then(|table| table.get(key)).and_then(toml_edit::Item::as_str)
    };
    let declared = value("workspace", "resolver").or_else(|| value("package", "resolver"));
    let shared = || manifest.get("workspace")?.get("package")?.get("edition")?.as_str();
    match (declared, value("package", "edition").or_else(shared)) {
        (Some(resolver), _) => resolver == "1",
        // The default depends on the edition of the root's package, if there is one.
        (None, edition) => edition.is_none_or(|edition| edition == "2015" || edition == "2018"),
    }
}

/// Runs cargo, and parses what it prints.
fn json<T: DeserializeOwned>(mut cargo: Command, what: &'static str) -> Result<T, CargoError> {
    let output = cargo.stderr(Stdio::inherit()).output().map_err(CargoError::NoCargo)?;
    if !output.status.success() {
        return Err(CargoError::Failed(what, output.status));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| CargoError::Output(what, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resolver_is_declared_or_that_of_the_edition() {
        for (manifest, expected) in [
            ("[workspace]\nmembers = []", true),
            ("[workspace]\nresolver = \"1\"", true),
            ("[workspace]\nresolver = \"3\"", false),
            ("[package]\nname = \"a\"", true),
            ("[package]\nedition = \"2018\"", true),
            ("[package]\nedition = \"2021\"\n[workspace]", false),
            ("[package]\nedition.workspace = true\n[workspace.package]\nedition = \"2024\"", false),
            ("[package]\nedition = \"2024\"\nresolver = \"1\"", true),
        ] {
            assert_eq!(declares_resolver_1(manifest), expected, "{manifest}");
        }
    }

    #[test]
    fn a_package_has_the_feature_if_its_manifest_declares_it() {
        for (features, expected) in [
            (r#""memreport":[],"default":[]"#, true),
            (r#""default":["memreport"]"#, false),
            ("", false),
        ] {
            let text = format!(
                r#"{{"id":"a","name":"shop","manifest_path":"/shop/Cargo.toml","targets":[],"features":{{{features}}}}}"#
            );
            let package: Package = serde_json::from_str(&text).unwrap();
            assert_eq!(package.has_feature(), expected, "{features}");
            assert_eq!(package.folder(), Path::new("/shop"));
        }
    }
}
