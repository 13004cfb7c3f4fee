//! Builds programs with cargo, with debug information, whatever the profiles say.

use super::error::CargoError;
use super::messages::{self, Built};
use super::workspace::{FEATURE, Package, Workspace};
use clap::{Args, FromArgMatches};
use std::ffi::{OsStr, OsString};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The heading of the flags that cargo has too.
pub(super) const CARGO: &str = "Options of cargo";

/// Flags of cargo that choose the package and how it is built.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = CARGO)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct BuildArgs {
    /// The package, by default that of this folder
    #[arg(short, long, value_name = "NAME")]
    pub package: Option<String>,
    /// Build with the profile `release`
    #[arg(short, long)]
    pub release: bool,
    /// Build with this profile
    #[arg(long, value_name = "NAME", conflicts_with = "release")]
    pub profile: Option<String>,
    /// Enable these features too
    #[arg(short = 'F', long, value_name = "FEATURES")]
    pub features: Vec<String>,
    /// Enable all features
    #[arg(long)]
    pub all_features: bool,
    /// Leave out the default features
    #[arg(long)]
    pub no_default_features: bool,
    /// Leave the feature `memreport` as it is
    #[arg(long)]
    pub without_feature: bool,
    /// Build for this target
    #[arg(long, value_name = "TRIPLE")]
    pub target: Option<OsString>,
    /// Build into this folder
    #[arg(long, value_name = "FOLDER")]
    pub target_dir: Option<PathBuf>,
    /// The manifest, if not in this folder or above
    #[arg(long, value_name = "FILE")]
    pub manifest_path: Option<PathBuf>,
    /// Run this many jobs of cargo
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<String>,
    /// Do not use the network
    #[arg(long)]
    pub offline: bool,
    /// Do not change Cargo.lock
    #[arg(long)]
    pub locked: bool,
}

/// Flags that choose a program of the package.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ProgramArgs {
    /// The binary, if there are several
    #[arg(long, value_name = "NAME", help_heading = CARGO)]
    pub bin: Option<String>,
    /// An example instead of a binary
    #[arg(long, value_name = "NAME", conflicts_with = "bin", help_heading = CARGO)]
    pub example: Option<String>,
}

/// A program to build: its package, its kind, and its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen<'w> {
    pub(crate) package: &'w Package,
    kind: &'static str,
    name: &'w str,
}

impl BuildArgs {
    /// Returns the flags with this manifest alone.
    pub(crate) fn of_manifest(path: Option<PathBuf>) -> Result<Self, clap::Error> {
        let command = BuildArgs::augment_args(clap::Command::new("build"));
        let args = BuildArgs::from_arg_matches(&command.try_get_matches_from(["build"])?)?;
        Ok(BuildArgs { manifest_path: path, ..args })
    }

    /// Returns a command of cargo with the flags that each takes.
    pub(crate) fn cargo(&self, command: &str) -> Command {
        self.cargo_at(self.manifest_path.as_deref(), command)
    }

    /// Returns a command of cargo for a manifest, or without one for the current folder's.
    fn cargo_at(&self, manifest: Option<&Path>, command: &str) -> Command {
        // Cargo names itself in this variable.
        let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut cargo = Command::new(program);
        cargo.arg(command);
        if let Some(path) = manifest {
            cargo.arg("--manifest-path").arg(path);
        }
        for (is_set, flag) in [(self.offline, "--offline"), (self.locked, "--locked")] {
            cargo.args(is_set.then_some(flag));
        }
        cargo
    }

    /// Returns the profile, as `default` if the flags name none.
    fn profile<'a>(&'a self, default: &'a str) -> &'a str {
        let named = self.profile.as_deref();
        named.unwrap_or(if self.release { "release" } else { default })
    }

    /// Builds what the words choose, of the packages, and returns the programs.
    pub(crate) fn build(
        &self,
        step: (&'static str, &str),
        workspace: &Workspace,
        packages: &[&Package],
        words: &[&OsStr],
    ) -> Result<Vec<Built>, CargoError> {
        // Resolver 1 enables features of one package alone.
        if packages.len() > 1 && workspace.has_resolver_1() {
            let each = packages.iter().map(|package| self.build_together(step, &[package], words));
            return Ok(each.collect::<Result<Vec<_>, _>>()?.concat());
        }
        self.build_together(step, packages, words)
    }

    /// Builds what the words choose with one command of cargo.
    fn build_together(
        &self,
        (command, default_profile): (&'static str, &str),
        packages: &[&Package],
        words: &[&OsStr],
    ) -> Result<Vec<Built>, CargoError> {
        // Resolver 1 enables features of the manifest's package alone, whatever `--package` names.
        let manifest = match packages {
            [package] => Some(package.manifest_path.as_path()),
            _ => self.manifest_path.as_deref(),
        };
        let mut cargo = self.cargo_at(manifest, command);
        let profile = self.profile(default_profile);
        if self.profile.is_some() || self.release {
            cargo.args(["--profile", profile]);
        }
        for setting in ["debug=true", "strip=false"] {
            cargo.arg("--config").arg(format!("profile.{}.{setting}", key(profile)));
        }
        for package in packages {
            // The id is of one package alone, also if a dependency has the same name.
            cargo.arg("--package").arg(&package.id);
        }
        self.add_features(packages, &mut cargo);
        for (flag, value) in [("--target", self.target.as_deref()), ("--jobs", self.jobs())] {
            cargo.args(value.into_iter().flat_map(|value| [OsStr::new(flag), value]));
        }
        if let Some(folder) = &self.target_dir {
            cargo.arg("--target-dir").arg(folder);
        }
        cargo.arg("--message-format=json-render-diagnostics").args(words);
        let started = cargo.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(CargoError::NoCargo)?;
        let output = child.stdout.take().map(BufReader::new);
        let built = output.map_or(Ok(Vec::new()), messages::read);
        let status = child.wait().map_err(CargoError::NoCargo)?;
        if !status.success() {
            return Err(CargoError::Failed(command, status));
        }
        built.map_err(|error| CargoError::Output(command, error.to_string()))
    }

    fn jobs(&self) -> Option<&OsStr> {
        self.jobs.as_deref().map(OsStr::new)
    }

    fn add_features(&self, packages: &[&Package], cargo: &mut Command) {
        let has_feature = packages.iter().any(|package| package.has_feature());
        let own = (has_feature && !self.without_feature).then(|| FEATURE.to_owned());
        // Of one package, resolver 1 takes no feature with the package's name before it.
        let named = |list: &String| match packages {
            [package] => without_package(list, &package.name),
            _ => list.clone(),
        };
        for features in self.features.iter().map(named).chain(own) {
            cargo.arg("--features").arg(features);
        }
        let flags = [
            (self.all_features, "--all-features"),
            (self.no_default_features, "--no-default-features"),
        ];
        for (is_set, flag) in flags {
            cargo.args(is_set.then_some(flag));
        }
    }
}

/// Returns a list of features without the name of the package before some of them.
fn without_package(list: &str, package: &str) -> String {
    let own = |feature: &str| match feature.split_once('/') {
        Some((before, feature)) if before == package => feature.to_owned(),
        _ => feature.to_owned(),
    };
    let features = list.split([',', ' ']).filter(|feature| !feature.is_empty()).map(own);
    features.collect::<Vec<_>>().join(",")
}

/// Returns a profile's name as a key of TOML.
fn key(profile: &str) -> String {
    let is_bare = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if profile.chars().all(is_bare) { profile.to_owned() } else { format!("{profile:?}") }
}

impl ProgramArgs {
    /// Chooses the program, as `cargo run` does.
    pub(crate) fn choose<'w>(
        &self,
        workspace: &'w Workspace,
        package: Option<&str>,
    ) -> Result<Chosen<'w>, CargoError> {
        let packages = workspace.chosen(package)?;
        let (kind, wanted) = match (&self.example, &self.bin) {
            (Some(name), _) => ("example", Some(name)),
            (None, name) => ("bin", name.as_ref()),
        };
        let all = |package: &'w Package| {
            package.targets(kind).map(move |target| Chosen { package, kind, name: &target.name })
        };
        let all: Vec<Chosen<'w>> = packages.iter().copied().flat_map(all).collect();
        let mut found = all.clone();
        if let Some(name) = wanted {
            found.retain(|chosen| chosen.name == name);
        } else if packages.len() == 1 && found.len() > 1 {
            let default = packages[0].default_run.as_deref();
            found.retain(|chosen| default.is_none_or(|name| chosen.name == name));
        }
        let is_unique = |name: &str| all.iter().filter(|other| other.name == name).count() == 1;
        let words = |chosen: &Chosen<'_>| match is_unique(chosen.name) {
            true => format!("--{kind} {}", chosen.name),
            false => format!("--package {} --{kind} {}", chosen.package.name, chosen.name),
        };
        match (&found[..], wanted) {
            ([chosen], _) => Ok(*chosen),
            ([], None) => Err(CargoError::NoProgram("binary; is this package a library?".into())),
            ([], Some(name)) if all.is_empty() => {
                Err(CargoError::NoProgram(format!("{kind} `{name}`")))
            }
            ([], Some(name)) => {
                let others: Vec<_> = all.iter().map(words).collect();
                Err(CargoError::NoProgram(format!(
                    "{kind} `{name}`; there is {}",
                    others.join(", ")
                )))
            }
            (several, _) => Err(CargoError::ManyPrograms(several.iter().map(words).collect())),
        }
    }
}

impl Chosen<'_> {
    /// Builds the program. Returns its file.
    pub(crate) fn build(
        self,
        args: &BuildArgs,
        workspace: &Workspace,
    ) -> Result<PathBuf, CargoError> {
        let flag = format!("--{}", self.kind);
        let words = [OsStr::new(&flag), OsStr::new(self.name)];
        let built = args.build(("build", "dev"), workspace, &[self.package], &words)?;
        let is_it = |built: &Built| built.target == self.name && built.kind == self.kind;
        let found = built.into_iter().find(is_it);
        found
            .map(|built| built.file)
            .ok_or_else(|| CargoError::NothingBuilt(format!("{} `{}`", self.kind, self.name)))
    }
}
