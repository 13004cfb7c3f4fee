//! Turns a plan into changes of files.

use super::error::AnnotateError;
use super::plan::{Facts, Plan, owner_of};
use super::source::edit::{self, Edit, Edited};
use super::source::index::{SourceIndex, last};
use super::source::items::FieldItem;
use super::source::manifest::{self, Origin};
use super::source::workspace::{FEATURE, Gate};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// One change of the source, by what it is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    /// A type derives `MallocSizeOf`.
    Derive(String),
    /// A static gets a reporter.
    Report(String),
    /// A field is skipped.
    Ignore(String),
    /// A field is no longer skipped.
    Measure(String),
    /// A field leaves its shared blocks to another.
    Share(String),
    /// A package enables a feature of memreport.
    Feature(String),
    /// A package depends on memreport.
    Depend(String),
}

/// A file before and after its changes.
#[derive(Debug)]
pub(crate) struct ChangedFile {
    pub(crate) path: PathBuf,
    pub(crate) old: String,
    pub(crate) new: Edited,
}

/// All changes of a plan.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) all: Vec<Change>,
    pub(crate) files: Vec<ChangedFile>,
    /// The numbers of the packages that change, each with the feature with which it is checked.
    pub(crate) packages: BTreeMap<usize, Option<String>>,
}

impl Facts<'_> {
    /// Returns the changes of a plan.
    pub(crate) fn changes(&self, plan: &Plan) -> Result<Changes, AnnotateError> {
        let mut writer =
            Writer { facts: self, changes: Changes::default(), edits: BTreeMap::new() };
        plan.derives.iter().for_each(|path| writer.derive(path));
        plan.roots.iter().for_each(|name| writer.report(name));
        plan.ignored.iter().for_each(|(field, why)| writer.ignore(field, why));
        plan.measured.iter().for_each(|field| writer.measure(field));
        plan.shared.keys().for_each(|field| writer.share(field));
        let mut changes = writer.finish();
        let packages = self.packages(plan);
        self.change_manifests(plan, &packages, &mut changes)?;
        for &number in &packages {
            changes.packages.insert(number, self.gate(number));
        }
        Ok(changes)
    }

    /// Returns the feature behind which a package measures; `None` if it always does.
    fn gate(&self, package: usize) -> Option<String> {
        match self.sources.packages[package].gate() {
            Gate::Open => None,
            Gate::Feature(name) => Some(name),
            Gate::Missing => Some(FEATURE.to_owned()),
        }
    }

    /// Returns the packages whose source changes.
    fn packages(&self, plan: &Plan) -> BTreeSet<usize> {
        let fields = plan.ignored.keys().chain(&plan.measured).chain(plan.shared.keys());
        let owners = fields.filter_map(|field| owner_of(self.index, field));
        let types = plan.derives.iter().map(|path| &**path).chain(owners);
        let types = types.filter_map(|path| Some(self.index.types.get(path)?.file));
        let statics = plan.roots.iter().filter_map(|name| self.index.file_of_root(name));
        types.chain(statics).map(|file| self.index.files[file].package).collect()
    }

    fn package_of(&self, subject: &str) -> Option<usize> {
        let own = self.index.file_of_root(subject);
        let file = own.or_else(|| {
            let path = owner_of(self.index, subject).unwrap_or(subject);
            self.index.types.get(path).map(|of| of.file)
        });
        file.map(|file| self.index.files[file].package)
    }

    fn change_manifests(
        &self,
        plan: &Plan,
        packages: &BTreeSet<usize>,
        changes: &mut Changes,
    ) -> Result<(), AnnotateError> {
        let mut wanted: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for (subject, feature) in &plan.features {
            if let Some(package) = self.package_of(subject) {
                wanted.entry(package).or_default().insert(feature.clone());
            }
        }
        for (number, package) in self.sources.packages.iter().enumerate() {
            let path = &package.manifest_path;
            let failed = |problem| AnnotateError::Cargo(format!("{}: {problem}", path.display()));
            let is_missing = packages.contains(&number) && package.gate() == Gate::Missing;
            let features: Vec<String> = wanted.remove(&number).into_iter().flatten().collect();
            // A program enables the feature in the packages that it depends on.
            let below = packages.iter().filter(|&&other| other != number).filter_map(|&other| {
                let name = &self.sources.packages[other].name;
                let is_below = package.depends_on(name);
                is_below.then(|| self.gate(other).map(|gate| format!("{name}/{gate}"))).flatten()
            });
            let below: Vec<String> = below.collect();
            let own_gate = match package.gate() {
                Gate::Feature(name) => Some(name),
                Gate::Missing if is_missing => Some(FEATURE.to_owned()),
                _ => None,
            };
            if !is_missing && features.is_empty() && (below.is_empty() || own_gate.is_none()) {
                continue;
            }
            let old = read(path)?;
            let mut new = old.clone();
            let mut own = Vec::new();
            if is_missing {
                new = manifest::add_measuring(&new, &Origin::of_this_program()).map_err(failed)?;
                own.push(Change::Depend(package.name.clone()));
            }
            if !features.is_empty() {
                new = manifest::enable(&new, &features).map_err(failed)?;
                own.extend(features.into_iter().map(Change::Feature));
            }
            if let Some(gate) = own_gate.filter(|_| !below.is_empty()) {
                new = manifest::extend_feature(&new, &gate, &below).map_err(failed)?;
                own.push(Change::Depend(package.name.clone()));
            }
            changes.add_manifest(path, old, &new, own);
        }
        Ok(())
    }
}

impl Changes {
    fn add_manifest(&mut self, path: &Path, old: String, new: &str, own: Vec<Change>) {
        if old == new {
            return;
        }
        let numbers = own.into_iter().map(|change| self.number(change)).collect();
        let new = Edited::replaced(&old, new, numbers);
        self.files.push(ChangedFile { path: path.to_owned(), old, new });
    }

    fn number(&mut self, change: Change) -> usize {
        let known = self.all.iter().position(|known| *known == change);
        known.unwrap_or_else(|| {
            self.all.push(change);
            self.all.len() - 1
        })
    }
}

struct Writer<'w, 'f> {
    facts: &'w Facts<'f>,
    changes: Changes,
    edits: BTreeMap<usize, Vec<Edit>>,
}

impl Writer<'_, '_> {
    fn add(&mut self, file: usize, change: Change, edit: impl FnOnce(&str, usize) -> Edit) {
        let number = self.changes.number(change);
        let edit = edit(&self.facts.index.files[file].text, number);
        self.edits.entry(file).or_default().push(edit);
    }

    fn gate(&self, file: usize) -> Option<String> {
        self.facts.gate(self.facts.index.files[file].package)
    }

    fn derive(&mut self, path: &str) {
        let Some(of) = self.facts.index.types.get(path) else { return };
        let text = match self.gate(of.file) {
            None => "#[derive(memreport::MallocSizeOf)]".to_owned(),
            Some(gate) => {
                format!("#[cfg_attr(feature = \"{gate}\", derive(memreport::MallocSizeOf))]")
            }
        };
        self.add(of.file, Change::Derive(path.to_owned()), |file, number| {
            edit::attribute(file, (of.file, of.at), &text, number)
        });
    }

    fn report(&mut self, name: &str) {
        let index = self.facts.index;
        let Some(file) = index.file_of_root(name) else { return };
        let gate = self.gate(file).map(|gate| format!("#[cfg(feature = \"{gate}\")]"));
        let of_static = || self.static_line(name);
        let Some((place, line, is_item)) = of_static().or_else(|| self.variable_line(name)) else {
            return;
        };
        let lines: Vec<String> = gate.into_iter().chain([line]).collect();
        self.add(file, Change::Report(name.to_owned()), |text, number| {
            edit::lines_behind(text, (file, place.start, place.end), (&lines, is_item), number)
        });
    }

    /// Returns the place of a static, and the line that registers its reporter.
    fn static_line(&self, name: &str) -> Option<(Range<usize>, String, bool)> {
        let of = self.facts.index.statics.get(name)?;
        let short = last(name);
        let path = report_path(self.facts.program, name, self.facts.index.statics.keys());
        let other = format!("The heap that {short} owns.");
        let description = of.description.as_ref().unwrap_or(&other);
        let line = format!("memreport::reporter!(\"{path}\", {short}, \"{description}\");");
        Some((of.start..of.end, line, true))
    }

    /// Returns the place of a variable, and the line that reports it.
    fn variable_line(&self, name: &str) -> Option<(Range<usize>, String, bool)> {
        let of = self.facts.index.variables.get(name)?;
        let own = &of.name;
        let path = format!("explicit/{}/{}", self.facts.program, own.trim_matches('_'));
        let description = format!("The heap that {own} owns.");
        let line =
            format!("memreport::report_value(\"{path}\", &{own}, \"{description}\").forever();");
        Some((of.start..of.end, line, false))
    }

    fn ignore(&mut self, field: &str, why: &str) {
        let Some((file, at)) = self.field(field).map(|(file, of)| (file, of.at)) else { return };
        let inner = format!("malloc_size_of(ignore = {why:?})");
        let text = match self.gate(file) {
            None => format!("#[{inner}]"),
            Some(gate) => format!("#[cfg_attr(feature = \"{gate}\", {inner})]"),
        };
        self.add(file, Change::Ignore(field.to_owned()), |source, number| {
            edit::attribute(source, (file, at), &text, number)
        });
    }

    fn measure(&mut self, field: &str) {
        let Some((file, of)) = self.field(field) else { return };
        let Some(range) = of.ignored.clone() else { return };
        self.add(file, Change::Measure(field.to_owned()), |source, number| {
            edit::without(source, file, range, number)
        });
    }

    fn share(&mut self, name: &str) {
        let Some((file, field)) = self.field(name) else { return };
        let (at, shared) = (field.at, field.shared.clone());
        let text = match self.gate(file) {
            None => "#[malloc_size_of(shared = elsewhere)]".to_owned(),
            Some(gate) => {
                format!("#[cfg_attr(feature = \"{gate}\", malloc_size_of(shared = elsewhere))]")
            }
        };
        self.add(file, Change::Share(name.to_owned()), |source, change| {
            let known =
                shared.and_then(|range| Some(range.start + source[range.clone()].rfind("here")?));
            match known {
                Some(at) => {
                    let (removed, added) = ("here".len(), "elsewhere".to_owned());
                    Edit { file, at, removed, added, change }
                }
                None => edit::attribute(source, (file, at), &text, change),
            }
        });
    }

    /// Returns the file of a field, and the field.
    fn field(&self, name: &str) -> Option<(usize, &FieldItem)> {
        let index: &SourceIndex = self.facts.index;
        let of = index.types.get(owner_of(index, name)?)?;
        Some((of.file, of.fields.iter().find(|field| field.name == name)?))
    }

    fn finish(self) -> Changes {
        let mut changes = self.changes;
        for (number, edits) in self.edits {
            let file = &self.facts.index.files[number];
            let new = edit::apply(&file.text, edits);
            changes.files.push(ChangedFile {
                path: file.path.clone(),
                old: file.text.clone(),
                new,
            });
        }
        changes
    }
}

/// Returns the path of a static's report, with as much of its own path as it needs to be unique.
fn report_path<'n>(program: &str, name: &str, all: impl Iterator<Item = &'n String>) -> String {
    let segments: Vec<&str> = name.split("::").collect();
    let short = segments[segments.len() - 1];
    let same = all.filter(|other| last(other) == short).count();
    let below = if same > 1 { segments[1..].join("/") } else { short.to_owned() };
    format!("explicit/{program}/{}", below.to_lowercase())
}

fn read(path: &Path) -> Result<String, AnnotateError> {
    fs::read_to_string(path).map_err(|error| AnnotateError::File(path.to_owned(), error))
}
