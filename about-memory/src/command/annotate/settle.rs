//! Changes a plan until it compiles.

use super::edits::{Change, Changes};
use super::error::AnnotateError;
use super::plan::{Facts, Plan};
use super::source::check::{CompileError, check};
use super::source::copy::Copy;
use super::source::edit::OldPlace;
use super::source::index::last;
use std::path::Path;

/// The most times that a copy is checked.
const MOST_CHECKS: usize = 16;

impl Facts<'_> {
    /// Checks a copy of the workspace with the changes of a plan, and changes the plan where the
    /// compiler rejects it. Returns the changes that compile.
    pub(crate) fn settle(
        &self,
        plan: &mut Plan,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Changes, AnnotateError> {
        let copy = Copy::new(self.sources).map_err(AnnotateError::Copy)?;
        for number in 1..=MOST_CHECKS {
            progress(number);
            let changes = self.changes(plan)?;
            let errors = self.check(&copy, &changes)?;
            if errors.is_empty() {
                return self.least(&copy, plan, changes);
            }
            let before = plan.clone();
            for error in &errors {
                self.answer(error, &changes, plan);
            }
            plan.derives.retain(|path| !plan.dropped.contains_key(path));
            if *plan == before {
                self.check_original(&copy, &changes)?;
                return self.give_up(&errors, &changes, plan, &copy);
            }
        }
        let first = AnnotateError::NothingToChange("no patch compiles".to_owned());
        Err(first)
    }

    /// Leaves out what only skipped fields needed, if the rest compiles.
    fn least(
        &self,
        copy: &Copy,
        plan: &mut Plan,
        changes: Changes,
    ) -> Result<Changes, AnnotateError> {
        let derives = |plan: &Plan| {
            let (derives, features) = Default::default();
            let mut least = Plan { derives, features, ..plan.clone() };
            self.complete(&mut least).map(|()| least)
        };
        let mut least = derives(plan)?;
        // The compiler named types that debug information does not lead to.
        let known = derives(&Plan { ignored: Default::default(), ..plan.clone() })?;
        let named = plan.derives.iter().filter(|path| !known.derives.contains(*path));
        least.derives.extend(named.cloned());
        if least == *plan {
            return Ok(changes);
        }
        let fewer = self.changes(&least)?;
        if !self.check(copy, &fewer)?.is_empty() {
            return Ok(changes);
        }
        *plan = least;
        Ok(fewer)
    }

    fn check(&self, copy: &Copy, changes: &Changes) -> Result<Vec<CompileError>, AnnotateError> {
        let fail = |error| AnnotateError::Copy(error);
        for file in &changes.files {
            copy.write(&file.path, &file.new.text).map_err(fail)?;
        }
        // What an earlier plan changed is as it was.
        let is_changed = |path: &Path| changes.files.iter().any(|file| file.path == path);
        for file in self.index.files.iter().filter(|file| !is_changed(&file.path)) {
            copy.write(&file.path, &file.text).map_err(fail)?;
        }
        for package in &self.sources.packages {
            let path = &package.manifest_path;
            if !is_changed(path) {
                let text = std::fs::read_to_string(path).map_err(fail)?;
                copy.write(path, &text).map_err(fail)?;
            }
        }
        let mut errors = Vec::new();
        for (&number, feature) in &changes.packages {
            let package = (&self.sources.packages[number], feature.as_deref());
            errors.extend(check(copy, self.sources, package).map_err(AnnotateError::Cargo)?);
        }
        Ok(errors)
    }

    /// Fails if the program does not compile without changes.
    fn check_original(&self, copy: &Copy, changes: &Changes) -> Result<(), AnnotateError> {
        let packages = changes.packages.keys().map(|&number| (number, None)).collect();
        let none = Changes { packages, ..Changes::default() };
        match self.check(copy, &none)?.first() {
            Some(error) => Err(AnnotateError::DoesNotCompile(error.message.clone())),
            None => Ok(()),
        }
    }

    /// Drops all changes of the files with errors that nothing is known to do about.
    fn give_up(
        &self,
        errors: &[CompileError],
        changes: &Changes,
        plan: &mut Plan,
        copy: &Copy,
    ) -> Result<Changes, AnnotateError> {
        let why = errors.first().map_or("it does not compile", |error| &error.message).to_owned();
        let files: Vec<&Path> =
            errors.iter().flat_map(|error| error.places.iter().map(|(file, _)| &**file)).collect();
        let is_in = |file: usize| files.contains(&&*self.index.files[file].path);
        let statics =
            plan.roots.iter().filter(|name| self.index.file_of_root(name).is_some_and(is_in));
        let statics: Vec<String> = statics.cloned().collect();
        let types = plan.derives.iter().filter(|path| is_in(self.index.types[*path].file));
        let types: Vec<String> = types.cloned().collect();
        if statics.is_empty() && types.is_empty() {
            return Err(AnnotateError::NothingToChange(format!(
                "the patch does not compile: {why}"
            )));
        }
        for subject in statics.iter().chain(&types) {
            plan.dropped.insert(subject.clone(), why.clone());
        }
        plan.roots.retain(|name| !statics.contains(name));
        plan.derives.retain(|path| !types.contains(path));
        let left = self.changes(plan)?;
        let _ = changes;
        match self.check(copy, &left)?.first() {
            None => Ok(left),
            Some(error) => Err(AnnotateError::NothingToChange(format!(
                "the patch does not compile: {}",
                error.message
            ))),
        }
    }

    /// Changes the plan by an error of the compiler.
    fn answer(&self, error: &CompileError, changes: &Changes, plan: &mut Plan) {
        let missing = missing_type(&error.message);
        let own = missing.and_then(|name| self.index.type_ending(without_arguments(name)));
        let is_free = |path: &str, plan: &Plan| {
            !plan.derives.contains(path)
                && !plan.dropped.contains_key(path)
                && !self.index.types[path].is_measured
        };
        if let Some(path) = own.filter(|path| is_free(path, plan)) {
            plan.derives.insert(path.to_owned());
            return;
        }
        for (path, at) in &error.places {
            let Some(file) = changes.files.iter().find(|file| file.path == *path) else { continue };
            match file.new.old_place(*at) {
                OldPlace::Added(number) => {
                    return drop_change(&changes.all[number], &error.message, plan);
                }
                OldPlace::Old(at) => {
                    if self.answer_at(path, at, (missing, &error.message), plan) {
                        return;
                    }
                }
            }
        }
    }

    /// Changes the plan by an error at a place of the source that is about a type without an impl.
    fn answer_at(
        &self,
        path: &Path,
        at: usize,
        (missing, message): (Option<&str>, &str),
        plan: &mut Plan,
    ) -> bool {
        let of = self
            .index
            .types
            .iter()
            .find(|(_, of)| self.index.files[of.file].path == path && of.whole.contains(&at));
        let Some((owner, of)) = of else { return false };
        let Some(field) = of.fields.iter().find(|field| field.of.contains(&at)) else {
            if !plan.derives.contains(owner) {
                return false;
            }
            plan.dropped.insert(owner.clone(), message.to_owned());
            return true;
        };
        let why = match missing {
            Some(name) if self.is_without_source(name) => {
                format!("the source of {name} is not found, as a macro or a function contains it")
            }
            Some(name) => format!("memreport cannot measure {}", name.trim_matches(['(', ')'])),
            None => format!("it cannot be measured: {message}"),
        };
        if plan.measured.remove(&field.name) {
            plan.dropped.insert(field.name.clone(), why);
        } else if field.ignored.is_none() {
            plan.ignored.insert(field.name.clone(), why);
        }
        true
    }
}

impl Facts<'_> {
    /// Returns whether a type is the program's own, and not an item of a module.
    fn is_without_source(&self, name: &str) -> bool {
        let name = without_arguments(name);
        let last = last(name);
        self.index.type_ending(name).is_none()
            && self.index.crates.iter().any(|krate| self.types.has_type(krate, last))
    }
}

/// Drops a change that does not compile.
fn drop_change(change: &Change, message: &str, plan: &mut Plan) {
    let (subject, was_there) = match change {
        Change::Derive(path) => (path, plan.derives.remove(path)),
        Change::Report(name) => (name, plan.roots.remove(name)),
        Change::Ignore(field) => (field, plan.ignored.remove(field).is_some()),
        Change::Measure(field) => (field, plan.measured.remove(field)),
        Change::Share(field) => (field, plan.shared.remove(field).is_some()),
        Change::Feature(feature) => {
            let before = plan.features.len();
            plan.features.retain(|(_, known)| known != feature);
            (feature, plan.features.len() < before)
        }
        Change::Depend(_) => return,
    };
    if was_there {
        plan.dropped.insert(subject.clone(), message.to_owned());
    }
}

/// The texts around the type without an impl: of this version of `memreport`, and of earlier ones.
const MISSING: [[&str; 2]; 2] = [
    ["the heap that `", "` owns is not known: `MallocSizeOf` is not implemented"],
    ["nobody knows what heap `", "` owns"],
];

/// Returns the type without an impl by the message of the compiler.
fn missing_type(message: &str) -> Option<&str> {
    let own = |[before, after]: [&str; 2]| message.strip_prefix(before)?.strip_suffix(after);
    if let Some(name) = MISSING.into_iter().find_map(own) {
        return Some(name);
    }
    let (name, of) = message.strip_prefix("the trait bound `")?.split_once(": ")?;
    of.contains("MallocSizeOf").then_some(name)
}

fn without_arguments(name: &str) -> &str {
    name.split('<').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_type_without_an_impl() {
        for (message, expected) in [
            (
                "the heap that `Cart<u8>` owns is not known: `MallocSizeOf` is not implemented",
                Some("Cart<u8>"),
            ),
            ("nobody knows what heap `(dyn Shape + 'static)` owns", Some("(dyn Shape + 'static)")),
            ("the trait bound `T: MallocSizeOf` is not satisfied", Some("T")),
            ("the trait bound `T: memreport::MallocSizeOf` is not satisfied", Some("T")),
            ("the trait bound `T: Clone` is not satisfied", None),
            ("mismatched types", None),
        ] {
            assert_eq!(missing_type(message), expected, "{message}");
        }
    }
}
