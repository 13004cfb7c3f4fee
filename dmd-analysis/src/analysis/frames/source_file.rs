//! Paths of source files: those of Rust's libraries and those of crates from a registry.

/// Returns whether a file belongs to the standard library.
pub(super) fn is_rust_library(file: &str) -> bool {
    file.starts_with("library/")
        || (file.starts_with("/rustc/") || file.contains("/rustlib/")) && file.contains("/library/")
}

/// Returns whether a file belongs to hashbrown: from a registry, or as the standard library's copy.
pub(super) fn is_hashbrown(file: &str) -> bool {
    file.contains("/hashbrown-") || file.contains("/rust/deps/")
}

/// Returns the crate and version, `serde_json-1.0.145`, of a file in cargo's registry or among its
/// checkouts.
pub(super) fn registry_crate(file: &str) -> Option<&str> {
    registry_path(file)?.split('/').next()
}

/// Returns the path of such a file from its crate on: `serde_json-1.0.145/src/de.rs`.
pub(super) fn registry_path(file: &str) -> Option<&str> {
    let rest = file.split_once("/registry/src/").or_else(|| file.split_once("/git/checkouts/"))?.1;
    Some(rest.split_once('/')?.1)
}
