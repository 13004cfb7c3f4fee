//! Adds dependencies and a feature to the text of a Cargo.toml, and keeps its format.

use super::workspace::FEATURE;
use std::path::{Path, PathBuf};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

/// The place of the packages.
#[derive(Debug)]
pub(crate) enum Origin {
    /// A registry.
    Published,
    /// A clone of the repository.
    Clone(PathBuf),
}

impl Origin {
    /// Returns the clone that this program was built from, if it is still there, or else a
    /// registry. The program of a release knows no folder of the machine that built it.
    #[cfg(memreport_release)]
    pub(crate) fn of_this_program() -> Self {
        Origin::Published
    }

    #[cfg(not(memreport_release))]
    pub(crate) fn of_this_program() -> Self {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        let own = own.filter(|folder| is_clone(folder));
        own.map_or(Origin::Published, |folder| Origin::Clone(folder.to_owned()))
    }
}

/// Returns whether the packages are in a folder.
pub(crate) fn is_clone(folder: &Path) -> bool {
    ["memreport", "dmd"].iter().all(|name| folder.join(name).join("Cargo.toml").is_file())
}

/// The dependencies, with their folders in a clone.
const DEPENDENCIES: [(&str, &str); 2] = [("memreport", "memreport"), ("memreport-dmd", "dmd")];

/// Returns the new text, and what was added.
///
/// # Errors
///
/// The text is no manifest of a package, or one of the names has another meaning there.
pub(crate) fn edit(text: &str, origin: &Origin) -> Result<(String, Vec<String>), String> {
    add(text, origin, &DEPENDENCIES)
}

/// Returns the new text with memreport alone, for a package that only measures.
///
/// # Errors
///
/// As those of [`edit`].
pub(crate) fn add_measuring(text: &str, origin: &Origin) -> Result<String, String> {
    add(text, origin, &DEPENDENCIES[..1]).map(|(text, _)| text)
}

/// Returns the new text in which the dependency on memreport enables these features of it.
///
/// # Errors
///
/// The text is no manifest of a package, or does not depend on memreport.
pub(crate) fn enable(text: &str, features: &[String]) -> Result<String, String> {
    let mut manifest = parse(text)?;
    let dependency = table(&mut manifest, "dependencies")?.get_mut("memreport");
    let dependency = dependency.ok_or_else(|| "there is no dependency memreport".to_owned())?;
    if let Some(version) = dependency.as_str().map(str::to_owned) {
        let mut table = InlineTable::new();
        table.insert("version", version.into());
        *dependency = Item::Value(Value::InlineTable(table));
    }
    if let Some(table) = dependency.as_inline_table_mut()
        && !table.contains_key("features")
        && let Some((_, last)) = table.iter_mut().last()
    {
        // The space before the closing brace would be before the comma.
        last.decor_mut().set_suffix("");
    }
    let dependency = dependency.as_table_like_mut();
    let dependency = dependency.ok_or_else(|| "`memreport` is no table".to_owned())?;
    if dependency.get("features").is_none() {
        dependency.insert("features", Item::Value(Array::new().into()));
    }
    let list = dependency.get_mut("features").and_then(Item::as_array_mut);
    let list = list.ok_or_else(|| "`features` of memreport is no list".to_owned())?;
    push_new(list, features);
    Ok(manifest.to_string())
}

/// Returns the new text in which a feature of the package enables others too.
///
/// # Errors
///
/// The text is no manifest of a package, or has no such feature.
pub(crate) fn extend_feature(text: &str, feature: &str, more: &[String]) -> Result<String, String> {
    let mut manifest = parse(text)?;
    let features = table(&mut manifest, "features")?;
    let list = features.get_mut(feature).and_then(Item::as_array_mut);
    push_new(list.ok_or_else(|| format!("there is no feature `{feature}`"))?, more);
    Ok(manifest.to_string())
}

fn push_new(list: &mut Array, more: &[String]) {
    for entry in more {
        if !list.iter().any(|known| known.as_str() == Some(entry)) {
            list.push(entry);
        }
    }
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error: toml_edit::TomlError| error.to_string())
}

fn add(
    text: &str,
    origin: &Origin,
    wanted: &[(&str, &str)],
) -> Result<(String, Vec<String>), String> {
    let mut manifest = parse(text)?;
    let mut added = Vec::new();
    let mut of_feature = Vec::new();
    let dependencies = table(&mut manifest, "dependencies")?;
    for &(name, folder) in wanted {
        match dependencies.get(name) {
            // The user's own stays; the feature enables it if it is optional.
            Some(dependency) if is_optional(dependency) => of_feature.push(format!("dep:{name}")),
            Some(_) => {}
            None => {
                dependencies.insert(name, dependency(folder, origin)?);
                of_feature.push(format!("dep:{name}"));
                added.push(format!("the dependency {name}"));
            }
        }
    }
    let features = table(&mut manifest, "features")?;
    if features.get(FEATURE).is_none() {
        features.insert(FEATURE, Item::Value(Array::new().into()));
        added.push(format!("the feature {FEATURE}"));
    }
    let feature = features.get_mut(FEATURE).and_then(Item::as_array_mut);
    let feature = feature.ok_or_else(|| format!("the feature `{FEATURE}` is no list"))?;
    for entry in of_feature {
        if !feature.iter().any(|known| known.as_str() == Some(&entry)) {
            if added.is_empty() {
                added.push(format!("{entry} to the feature {FEATURE}"));
            }
            feature.push(entry);
        }
    }
    Ok((manifest.to_string(), added))
}

/// Returns a table at the top of the manifest, which is added if it is missing.
fn table<'m>(manifest: &'m mut DocumentMut, name: &str) -> Result<&'m mut dyn TableLike, String> {
    if !manifest.contains_table("package") {
        return Err("this is no manifest of a package".to_owned());
    }
    let item = manifest.entry(name).or_insert_with(|| Item::Table(Table::new()));
    item.as_table_like_mut().ok_or_else(|| format!("`{name}` is no table"))
}

fn is_optional(dependency: &Item) -> bool {
    let optional = dependency.as_table_like().and_then(|table| table.get("optional"));
    optional.and_then(Item::as_bool) == Some(true)
}

fn dependency(folder: &str, origin: &Origin) -> Result<Item, String> {
    let mut table = InlineTable::new();
    match origin {
        Origin::Published => {
            let version = env!("CARGO_PKG_VERSION");
            let minor = version.rsplit_once('.').map_or(version, |(minor, _)| minor);
            table.insert("version", minor.into());
        }
        Origin::Clone(root) => {
            let path = root.join(folder);
            table.insert("path", utf8(&path)?.into());
        }
    }
    table.insert("optional", true.into());
    Ok(Item::Value(Value::InlineTable(table)))
}

fn utf8(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| format!("{}: the path is not UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: &str =
        "[package]\nname = \"shop\"   # ours\nversion = \"0.1.0\"\n\n[dependencies]\n";

    #[test]
    fn dependencies_and_the_feature_are_added_once() {
        let (text, added) = edit(FRESH, &Origin::Clone("/m".into())).unwrap();
        // Windows has backslashes, which TOML writes between single quotes.
        let as_unix = text.replace('\\', "/").replace('\'', "\"");
        insta::assert_snapshot!(as_unix, @r#"
        [package]
        name = "shop"   # ours
        version = "0.1.0"

        [dependencies]
        memreport = { path = "/m/memreport", optional = true }
        memreport-dmd = { path = "/m/dmd", optional = true }

        [features]
        memreport = ["dep:memreport", "dep:memreport-dmd"]
        "#);
        assert_eq!(added.len(), 3, "{added:?}");
        assert_eq!(edit(&text, &Origin::Published), Ok((text.clone(), Vec::new())));
    }

    #[test]
    fn features_of_memreport_are_enabled_once_in_each_form() {
        let slab = ["slab".to_owned()];
        for (own, expected) in [
            (
                "memreport = \"0.1\" # ours\n",
                "memreport = { version = \"0.1\", features = [\"slab\"] }\n",
            ),
            (
                "memreport = { path = \"m\", features = [\"url\"] }\n",
                "memreport = { path = \"m\", features = [\"url\", \"slab\"] }\n",
            ),
            (
                "memreport.workspace = true\n",
                "memreport.workspace = true\nmemreport.features = [\"slab\"]\n",
            ),
        ] {
            let head = "[package]\nname = \"a\"\n[dependencies]\n";
            let text = enable(&format!("{head}{own}"), &slab).unwrap();
            assert_eq!(text.strip_prefix(head), Some(expected));
            assert_eq!(enable(&text, &slab), Ok(text.clone()));
        }
        assert!(enable("[package]\nname = \"a\"\n", &slab).is_err());
    }

    #[test]
    fn a_package_that_only_measures_gets_no_tracker() {
        let text = add_measuring(FRESH, &Origin::Published).unwrap();
        assert!(text.contains("memreport = [\"dep:memreport\"]"), "{text}");
        assert!(!text.contains("dmd"), "{text}");
        let text = extend_feature(&text, "memreport", &["stock/memreport".to_owned()]).unwrap();
        assert!(text.contains("memreport = [\"dep:memreport\", \"stock/memreport\"]"), "{text}");
        assert!(extend_feature(&text, "other", &[]).is_err());
    }

    #[test]
    fn what_the_user_has_stays() {
        let own = "[package]\nname = \"shop\"\n[dependencies.memreport]\nversion = \"0.1\"\n\n[features]\ndefault = []\n";
        let (text, added) = edit(own, &Origin::Published).unwrap();
        assert!(text.contains("[dependencies.memreport]\nversion = \"0.1\"\n"), "{text}");
        assert!(text.contains("memreport = [\"dep:memreport-dmd\"]"), "{text}");
        let minor = concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));
        let wanted = format!("memreport-dmd = {{ version = \"{minor}\", optional = true }}");
        assert!(text.contains(&wanted), "{text}");
        assert_eq!(added, ["the dependency memreport-dmd", "the feature memreport"]);
    }

    #[test]
    fn a_manifest_that_cannot_be_changed_is_named() {
        let table = [
            ("[workspace]\n", "this is no manifest of a package"),
            (
                "[package]\nname = \"a\"\n[features]\nmemreport = 1\n",
                "the feature `memreport` is no list",
            ),
            ("dependencies = 1\n[package]\nname = \"a\"\n", "`dependencies` is no table"),
        ];
        for (text, expected) in table {
            assert_eq!(edit(text, &Origin::Published).unwrap_err(), expected);
        }
        assert!(edit("[package\n", &Origin::Published).is_err());
    }

    #[test]
    fn the_feature_enables_dependencies_of_the_user_that_are_optional() {
        let own = "[package]\nname = \"shop\"\n[dependencies]\nmemreport = { version = \"0.1\", optional = true }\n\
                   memreport-dmd = { version = \"0.1\", optional = false }\n\n[features]\nmemreport = []\n";
        let (text, added) = edit(own, &Origin::Published).unwrap();
        assert!(text.ends_with("memreport = [\"dep:memreport\"]\n"), "{text}");
        assert_eq!(added, ["dep:memreport to the feature memreport"]);
    }
}
