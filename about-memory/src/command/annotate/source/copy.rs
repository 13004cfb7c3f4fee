//! A copy of a workspace, in which changes are tried.

use super::workspace::Sources;
use std::collections::HashSet;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Item, TableLike, Value};

/// A copy of a workspace, below its own folder for build outputs. It stays there, so that a later
/// one is built quickly.
#[derive(Debug)]
pub(crate) struct Copy {
    from: PathBuf,
    pub(crate) folder: PathBuf,
}

impl Copy {
    /// Copies the files of a workspace that are new or changed, and removes those that are gone.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written.
    pub(crate) fn new(sources: &Sources) -> io::Result<Self> {
        let from = sources.workspace_root.clone();
        // Workspaces may share a folder for build outputs, by $CARGO_TARGET_DIR.
        let mut hasher = DefaultHasher::new();
        from.hash(&mut hasher);
        let copies = sources.target_directory.join("memreport-annotate");
        let folder = copies.join(format!("{:016x}", hasher.finish()));
        fs::create_dir_all(&folder)?;
        copy_folder(&from, &folder, &sources.target_directory)?;
        let copy = Self { from, folder };
        let root = copy.from.join("Cargo.toml");
        let members = sources.packages.iter().map(|package| &package.manifest_path);
        let manifests: HashSet<&PathBuf> = members.chain([&root]).collect();
        for manifest in manifests {
            let text = fs::read_to_string(manifest)?;
            copy.write(manifest, &text)?;
        }
        Ok(copy)
    }

    /// Returns the place of a file in the copy; `None` if it is not in the workspace.
    pub(crate) fn place(&self, file: &Path) -> Option<PathBuf> {
        Some(self.folder.join(file.strip_prefix(&self.from).ok()?))
    }

    /// Returns the place of a file of the copy in the workspace.
    pub(crate) fn original(&self, file: &Path) -> Option<PathBuf> {
        Some(self.from.join(file.strip_prefix(&self.folder).ok()?))
    }

    /// Gives a file a text. Paths that lead out of the workspace are made absolute in manifests.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or is not in the workspace.
    pub(crate) fn write(&self, file: &Path, text: &str) -> io::Result<()> {
        let outside = || io::Error::other(format!("{} is outside the workspace", file.display()));
        let place = self.place(file).ok_or_else(outside)?;
        let text =
            if file.ends_with("Cargo.toml") { self.manifest(file, text) } else { text.to_owned() };
        // An unchanged file keeps its time, so that it is not built again.
        if fs::read_to_string(&place).is_ok_and(|known| known == text) {
            return Ok(());
        }
        fs::write(place, text)
    }

    fn manifest(&self, file: &Path, text: &str) -> String {
        let Ok(mut manifest) = text.parse::<DocumentMut>() else { return text.to_owned() };
        let folder = file.parent().unwrap_or(&self.from);
        self.make_absolute(manifest.as_table_mut(), folder);
        // The copy lies within another workspace.
        if file == self.from.join("Cargo.toml") && !manifest.contains_key("workspace") {
            manifest.insert("workspace", Item::Table(toml_edit::Table::new()));
        }
        manifest.to_string()
    }

    fn make_absolute(&self, table: &mut dyn TableLike, folder: &Path) {
        for (key, item) in table.iter_mut() {
            if let Some(inner) = item.as_table_like_mut() {
                self.make_absolute(inner, folder);
                continue;
            }
            if let Some(list) = item.as_array_of_tables_mut() {
                list.iter_mut().for_each(|inner| self.make_absolute(inner, folder));
                continue;
            }
            let Some(path) = item.as_str().filter(|_| key == "path") else { continue };
            let Ok(path) = fs::canonicalize(folder.join(path)) else { continue };
            if !path.starts_with(&self.from)
                && let Some(path) = path.to_str()
            {
                *item = Item::Value(Value::from(path));
            }
        }
    }
}

/// Copies a folder. Links stay links to the same file.
fn copy_folder(from: &Path, to: &Path, except: &Path) -> io::Result<()> {
    let mut kept = HashSet::new();
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (own, place) = (entry.path(), to.join(entry.file_name()));
        if own == except || entry.file_name() == ".git" {
            continue;
        }
        kept.insert(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            fs::create_dir_all(&place)?;
            copy_folder(&own, &place, except)?;
        } else if kind.is_file() {
            copy_file(&own, &place)?;
        } else if kind.is_symlink() && !place.exists() {
            let _ = fs::remove_file(&place);
            link(fs::canonicalize(&own).unwrap_or(own), &place)?;
        }
    }
    for entry in fs::read_dir(to)? {
        let entry = entry?;
        if !kept.contains(&entry.file_name()) {
            let is_folder = entry.file_type()?.is_dir();
            let gone = if is_folder { fs::remove_dir_all } else { fs::remove_file };
            gone(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(unix)]
use std::os::unix::fs::symlink as link;

/// Makes a link. Windows has two kinds, and allows them to those who may have checked them out.
#[cfg(windows)]
fn link(to: impl AsRef<Path>, place: &Path) -> io::Result<()> {
    use std::os::windows::fs::{symlink_dir, symlink_file};
    if to.as_ref().is_dir() { symlink_dir(to, place) } else { symlink_file(to, place) }
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let (old, new) = (fs::metadata(from)?, fs::symlink_metadata(to));
    let is_same = new.is_ok_and(|new| {
        new.is_file() && new.len() == old.len() && new.modified().ok() == old.modified().ok()
    });
    if is_same {
        return Ok(());
    }
    let _ = fs::remove_file(to);
    fs::copy(from, to)?;
    File::options().append(true).open(to)?.set_modified(old.modified()?)
}
