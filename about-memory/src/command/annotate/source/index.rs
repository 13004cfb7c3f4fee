//! Finds the types and statics of a program in its source files, by their paths.

use super::items::{self, Found, StaticItem, TypeItem};
use super::variables::{self, VariableItem};
use super::workspace::SourceCrate;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::{Block, Item, ItemMod, Meta};

/// A source file.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// The number of the package that it is of.
    pub(crate) package: usize,
}

/// The types and statics of a program, by their paths: `shop::stock::Item`.
#[derive(Debug, Default)]
pub(crate) struct SourceIndex {
    pub(crate) files: Vec<SourceFile>,
    pub(crate) types: HashMap<String, TypeItem>,
    pub(crate) statics: HashMap<String, StaticItem>,
    /// The variables of functions that are a new `Arc`, by their names: `cart in shop::main`.
    pub(crate) variables: HashMap<String, VariableItem>,
    /// The crates, by their names in paths.
    pub(crate) crates: HashSet<String>,
    /// The files that cannot be read, with the reasons.
    pub(crate) problems: Vec<String>,
    /// The names of types with an impl of `MallocSizeOf`, by crate.
    implemented: HashSet<(String, String)>,
}

/// The place of a module's items.
struct Place<'p> {
    /// The path of the module: `shop::stock`.
    path: String,
    /// The folder with the files of its modules.
    folder: PathBuf,
    of: &'p SourceCrate,
}

impl SourceIndex {
    /// Reads the files of these crates.
    pub(crate) fn read(crates: &[SourceCrate]) -> Self {
        let mut index = Self::default();
        for of in crates {
            index.crates.insert(of.name.clone());
            let folder = of.root.parent().unwrap_or(Path::new("")).to_owned();
            index.read_file(&of.root, &Place { path: of.name.clone(), folder, of });
        }
        for (path, of) in &mut index.types {
            let (krate, _) = path.split_once("::").unwrap_or((path, ""));
            let key = (krate.to_owned(), last(path).to_owned());
            of.is_measured |= index.implemented.contains(&key);
        }
        index
    }

    fn read_file(&mut self, path: &Path, place: &Place<'_>) {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => return self.problems.push(format!("{}: {error}", path.display())),
        };
        let file = match syn::parse_file(&text) {
            Ok(file) => file,
            Err(error) => {
                let line = error.span().start().line;
                return self.problems.push(format!("{}:{line}: {error}", path.display()));
            }
        };
        let number = self.files.len();
        // Places are counted from behind the first line if that is of an interpreter.
        let first = usize::from(file.shebang.is_some()) * text.find('\n').unwrap_or(0);
        let first = first + if text.starts_with('\u{feff}') { 3 } else { 0 };
        let package = place.of.package;
        self.files.push(SourceFile { path: path.to_owned(), text, package });
        self.add_items(&file.items, place, Found { file: number, first });
    }

    fn add_items(&mut self, items: &[Item], place: &Place<'_>, found: Found) {
        for item in items {
            let path = |ident: &syn::Ident| format!("{}::{}", place.path, items::name(ident));
            match item {
                Item::Mod(module) if !is_of_tests(module) => self.add_module(module, place, found),
                Item::Struct(item) => {
                    let entry = self.types.entry(path(&item.ident));
                    entry.or_insert_with_key(|path| items::of_struct(item, path, found));
                }
                Item::Enum(item) => {
                    let entry = self.types.entry(path(&item.ident));
                    entry.or_insert_with_key(|path| items::of_enum(item, path, found));
                }
                Item::Static(item) => {
                    let entry = self.statics.entry(path(&item.ident));
                    entry.or_insert_with(|| items::of_static(item, found));
                }
                Item::Fn(item) => self.add_variables(&item.block, &path(&item.sig.ident), found),
                Item::Impl(item) => {
                    for (name, block) in variables::methods(item) {
                        self.add_variables(block, &format!("{}::{name}", place.path), found);
                    }
                    let krate = place.of.name.clone();
                    let name = items::implemented(item);
                    self.implemented.extend(name.map(|name| (krate, name)));
                }
                _ => {}
            }
        }
    }

    fn add_module(&mut self, module: &ItemMod, place: &Place<'_>, found: Found) {
        let name = items::name(&module.ident);
        let path = format!("{}::{name}", place.path);
        let inner = Place { path, folder: place.folder.join(&name), of: place.of };
        if let Some((_, items)) = &module.content {
            return self.add_items(items, &inner, found);
        }
        let own = self.files[found.file].path.parent().unwrap_or(Path::new("")).to_owned();
        let Some((file, folder)) = file_of(module, &name, &own, place) else { return };
        if !self.files.iter().any(|known| known.path == file && known.package == place.of.package) {
            self.read_file(&file, &Place { folder, ..inner });
        }
    }

    fn add_variables(&mut self, block: &Block, path: &str, found: Found) {
        let text = &self.files[found.file].text;
        for (name, of) in variables::of_block(block, text, found) {
            self.variables.entry(format!("{name} in {path}")).or_insert(of);
        }
    }

    /// Returns the file of a static or a variable.
    pub(crate) fn file_of_root(&self, name: &str) -> Option<usize> {
        let of_static = self.statics.get(name).map(|of| of.file);
        of_static.or_else(|| self.variables.get(name).map(|of| of.file))
    }

    /// Returns the name of the variable that a line of a file makes.
    pub(crate) fn variable_at(&self, file: &str, line: u32) -> Option<&str> {
        let is_there = |of: &VariableItem| {
            of.lines.contains(&line) && self.files[of.file].path.ends_with(file)
        };
        let mut all = self.variables.iter().filter(|(_, of)| is_there(of));
        all.next().filter(|_| all.next().is_none()).map(|(name, _)| &**name)
    }

    /// Returns the type whose path ends with this one: `stock::Item` or `Item`. Of several there is
    /// none.
    pub(crate) fn type_ending(&self, end: &str) -> Option<&str> {
        if let Some((path, _)) = self.types.get_key_value(end) {
            return Some(path);
        }
        let end = format!("::{end}");
        let mut all = self.types.keys().filter(|path| path.ends_with(&end));
        all.next().filter(|_| all.next().is_none()).map(|path| &**path)
    }
}

/// Returns the file of a module, and the folder of the modules in it.
fn file_of(
    module: &ItemMod,
    name: &str,
    own: &Path,
    place: &Place<'_>,
) -> Option<(PathBuf, PathBuf)> {
    let stated = module.attrs.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => items::text(&pair.value),
        _ => None,
    });
    if let Some(stated) = stated {
        let file = own.join(stated);
        // Modules of such a file are beside it.
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        return file.is_file().then_some((file, folder));
    }
    let files = [place.folder.join(format!("{name}.rs")), place.folder.join(name).join("mod.rs")];
    let file = files.into_iter().find(|file| file.is_file())?;
    Some((file, place.folder.join(name)))
}

fn is_of_tests(module: &ItemMod) -> bool {
    module.attrs.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    })
}

/// Returns the last name of a path.
pub(crate) fn last(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}
