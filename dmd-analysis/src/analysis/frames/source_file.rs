//! Paths of source files: those of Rust's libraries and those of crates from a registry.

use std::borrow::Cow;

/// Returns whether a file belongs to the standard library.
pub(super) fn is_rust_library(file: &str) -> bool {
    file.starts_with("library/")
        || (file.starts_with("/rustc/") || file.contains("/rustlib/")) && file.contains("/library/")
}

/// Returns whether a file belongs to hashbrown: from a registry, or as the standard library's copy.
pub(super) fn is_hashbrown(file: &str) -> bool {
    file.contains("/hashbrown-") || file.contains("/rust/deps/")
}

/// Returns the crate, as `serde_json`, of a file in cargo's registry or among its checkouts.
pub(super) fn registry_crate(file: &str) -> Option<Cow<'_, str>> {
    if let Some((_, checkout)) = file.split_once("/git/checkouts/") {
        // `NAME-HASH/REVISION/src/lib.rs`, or with folders of a workspace before `src`.
        let (repository, rest) = checkout.split_once('/')?;
        let (_revision, path) = rest.split_once('/')?;
        let name = || repository.rsplit_once('-').map_or(repository, |(name, _)| name);
        return Some(underscored(package_folder(path).unwrap_or_else(name)));
    }
    Some(underscored(without_version(registry_path(file)?.split('/').next()?)))
}

/// Returns the path of such a file from its crate on: `serde_json-1.0.145/src/de.rs`.
pub(super) fn registry_path(file: &str) -> Option<&str> {
    let rest = file.split_once("/registry/src/").or_else(|| file.split_once("/git/checkouts/"))?.1;
    Some(rest.split_once('/')?.1)
}

/// Returns the crate by the folder of a package: the one before `src`, or the one of a build
/// script's output.
pub(super) fn package_crate(file: &str) -> Option<Cow<'_, str>> {
    if let Some((_, built)) = file.rsplit_once("/build/")
        && let Some((folder, _)) = built.split_once("/out/")
    {
        return Some(underscored(folder.rsplit_once('-').map_or(folder, |(name, _)| name)));
    }
    package_folder(file).map(without_version).map(underscored)
}

/// Returns the folder before the last of `src`, `tests`, `examples` and `benches`.
fn package_folder(path: &str) -> Option<&str> {
    let kinds = ["/src/", "/tests/", "/examples/", "/benches/"];
    let end = kinds.iter().filter_map(|kind| path.rfind(kind)).max()?;
    path[..end].rsplit('/').next().filter(|folder| !folder.is_empty())
}

/// Returns `serde_json` of `serde_json-1.0.145`. A name may end in a number, as `md-5`.
fn without_version(folder: &str) -> &str {
    let begins_version = |at: &usize| {
        let major = folder[at + 1..].split_once('.').map_or("", |(major, _)| major);
        !major.is_empty() && major.bytes().all(|byte| byte.is_ascii_digit())
    };
    let end = folder.match_indices('-').map(|(at, _)| at).find(begins_version);
    end.map_or(folder, |at| &folder[..at])
}

/// Returns the name of a package as code has it: `regex_automata` for `regex-automata`.
fn underscored(name: &str) -> Cow<'_, str> {
    if name.contains('-') { name.replace('-', "_").into() } else { name.into() }
}

#[cfg(test)]
mod tests {
    use super::{package_crate, registry_crate};

    #[test]
    fn files_show_the_crate() {
        let of_registry = "/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f";
        let checkouts = "/root/.cargo/git/checkouts";
        let table = [
            (format!("{of_registry}/regex-automata-0.4.9/src/nfa.rs"), Some("regex_automata")),
            (format!("{of_registry}/foo-1.0.0-beta.2/lib.rs"), Some("foo")),
            (format!("{of_registry}/md-5-0.10.6/src/lib.rs"), Some("md_5")),
            (format!("{checkouts}/boa-1a2b3c4d5e6f/9f8e7d6/core/gc/src/lib.rs"), Some("gc")),
            (format!("{checkouts}/thin-vec-1a2b3c4d5e6f/9f8e7d6/src/lib.rs"), Some("thin_vec")),
            ("/home/me/shop/src/main.rs".to_owned(), None),
        ];
        for (file, expected) in table {
            assert_eq!(registry_crate(&file).as_deref(), expected, "{file}");
        }
        let table = [
            ("/home/me/shop/src/main.rs", Some("shop")),
            ("/home/me/shop-parts/tests/all.rs", Some("shop_parts")),
            ("/t/release/build/shop-0123456789abcdef/out/tables.rs", Some("shop")),
            ("src/main.rs", None),
            ("main.c", None),
        ];
        for (file, expected) in table {
            assert_eq!(package_crate(file).as_deref(), expected, "{file}");
        }
    }
}
