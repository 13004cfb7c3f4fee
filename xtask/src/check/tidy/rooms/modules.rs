//! The modules of a crate, and the imports between them.

use std::collections::BTreeMap;

use super::graph::Site;
use super::paths::{Paths, paths};
use crate::check::tidy::files::Workspace;

/// The path of a module below its crate: empty for `lib.rs` and `main.rs`.
pub(crate) type Name = Vec<String>;

/// One import of a module by another.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) from: Name,
    pub(crate) to: Name,
    pub(crate) site: Site,
}

/// The modules of a crate by their names.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    modules: BTreeMap<Name, Module>,
}

#[derive(Debug)]
struct Module {
    file: String,
    paths: Paths,
}

/// Re-exports of re-exports are followed this far.
const MOST_STEPS: usize = 8;

impl Modules {
    /// Reads the modules of a crate, apart from those for tests.
    pub(crate) fn of(workspace: &Workspace, name: &str) -> Self {
        let root = format!("{name}/src/");
        let mut found = Modules::default();
        let mut test_modules = Vec::new();
        for source in workspace.below(&format!("{name}/src")).filter(|source| !source.is_test()) {
            let path = source.path.trim_start_matches(&root).trim_end_matches(".rs");
            let mut name: Name = path.split('/').map(str::to_owned).collect();
            if ["lib", "main"].contains(&path) {
                name.clear();
            } else if name[0] == "bin" {
                continue;
            }
            let paths = paths(&source.text);
            let of_tests = paths.test_modules.iter();
            test_modules
                .extend(of_tests.map(|test| [&name[..], std::slice::from_ref(test)].concat()));
            if paths.is_test {
                test_modules.push(name.clone());
            }
            found.add(name, Module { file: source.path.clone(), paths });
        }
        found.modules.retain(|name, _| !test_modules.iter().any(|test| name.starts_with(test)));
        found
    }

    /// Adds a module. A crate with a library and a program has two roots, which count as one.
    fn add(&mut self, name: Name, module: Module) {
        if let Some(other) = self.modules.get_mut(&name) {
            other.paths.paths.extend(module.paths.paths);
            other.paths.macros.extend(module.paths.macros);
        } else {
            self.modules.insert(name, module);
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.modules.keys()
    }

    /// Returns every import of a module by another module of the crate.
    pub(crate) fn imports(&self) -> Vec<Import> {
        let mut imports = Vec::new();
        for (from, module) in &self.modules {
            for path in &module.paths.paths {
                let to = self.absolute(from, &path.segments, 0).map(|path| self.target(&path, 0));
                if let Some(to) = to.filter(|to| to != from) {
                    let site = Site { file: module.file.clone(), line: path.line };
                    imports.push(Import { from: from.clone(), to, site });
                }
            }
        }
        imports
    }

    /// Returns a path from the crate's root; `None` if it leads to another crate.
    fn absolute(&self, from: &Name, segments: &[String], step: usize) -> Option<Vec<String>> {
        let rest = segments.get(1..)?;
        match segments[0].as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([from, rest].concat()),
            "super" => {
                let parent = from.get(..from.len().checked_sub(1)?)?.to_vec();
                match rest.first().map(String::as_str) {
                    Some("super") => self.absolute(&parent, rest, step),
                    _ => Some([&parent[..], rest].concat()),
                }
            }
            first => {
                let child = [&from[..], &segments[..1]].concat();
                if self.modules.contains_key(&child) {
                    return Some([&child[..], rest].concat());
                }
                let base = self.named(from, first, step)?;
                Some([&base[..], rest].concat())
            }
        }
    }

    /// Returns the path from the root of an item that a module imports by name.
    ///
    /// A trait and a derive may share a name: an import from another crate does not count.
    fn named(&self, module: &Name, name: &str, step: usize) -> Option<Vec<String>> {
        let mut paths = self.modules.get(module)?.paths.paths.iter().filter(|_| step < MOST_STEPS);
        paths.find_map(|path| {
            let is_it = path.alias.as_deref() == Some(name);
            is_it.then(|| self.absolute(module, &path.segments, step + 1)).flatten()
        })
    }

    /// Returns the module that an item comes from.
    ///
    /// Re-exports are followed out of the root, and within a room. An item that a room re-exports
    /// from another room counts as the former's.
    fn target(&self, path: &[String], step: usize) -> Name {
        let lengths = (0..=path.len()).rev();
        let length = lengths.into_iter().find(|length| self.modules.contains_key(&path[..*length]));
        let (module, rest) = path.split_at(length.unwrap_or(0));
        let module = module.to_vec();
        let Some(item) = rest.first() else { return module };
        if module.is_empty()
            && let Some(name) = self.defining_macro(item)
        {
            return name.clone();
        }
        let Some(base) = self.named(&module, item, step) else { return module };
        let target = self.target(&[&base[..], &rest[1..]].concat(), step + 1);
        if module.is_empty() || module.first() == target.first() { target } else { module }
    }

    /// Returns the module that defines a macro, whose path begins at the root wherever it stands.
    fn defining_macro(&self, item: &str) -> Option<&Name> {
        let mut modules = self.modules.iter();
        let found = modules.find(|(_, module)| module.paths.macros.iter().any(|name| name == item));
        found.map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_lead_to_the_module_that_defines_the_item() {
        let workspace = Workspace::of(&[
            ("dmd/src/lib.rs", "pub use other::Item; pub use {a::deep::Item, std::fmt};"),
            ("dmd/src/a.rs", "pub use deep::Item; pub use crate::b::Other; mod deep;"),
            ("dmd/src/a/deep.rs", "macro_rules! owns { () => {} }"),
            ("dmd/src/b.rs", ""),
            ("dmd/src/b/of_tests.rs", "#![cfg(test)]\nuse crate::a;"),
            ("dmd/src/c.rs", "use crate::Item;"),
            ("dmd/src/d.rs", "use crate::a::{Item, Other}; use std::a;"),
            ("dmd/src/e.rs", "use crate::a as x;\nfn f() { x::deep::f(); crate::owns!() }"),
            ("dmd/src/bin/f.rs", "use crate::a;"),
        ]);
        let imports = Modules::of(&workspace, "dmd").imports();
        let imports = imports.iter().filter(|import| import.from.len() == 1);
        let shown: Vec<String> = imports
            .map(|Import { from, to, site }| {
                format!("{}:{} → {}", from.join("::"), site.line, to.join("::"))
            })
            .collect();
        assert_eq!(
            shown,
            [
                "a:1 → a::deep",
                "a:1 → b",
                "c:1 → a::deep",
                "d:1 → a::deep",
                "d:1 → a",
                "e:1 → a",
                "e:2 → a::deep",
                "e:2 → a::deep",
            ]
        );
    }
}
