//! The names of files, and their first lines.

use std::path::Path;

use super::files::Workspace;
use super::outcome::Outcome;

/// Names that hold anything and therefore describe nothing.
const DRAWERS: [&str; 6] = ["util", "utils", "common", "helpers", "manager", "misc"];

/// Checks that every file begins with a line of module documentation.
pub(crate) fn check_first_lines(workspace: &Workspace) -> Outcome {
    let silent = workspace.sources.iter().filter(|source| !source.text.starts_with("//!"));
    Outcome::none_of(silent.map(|source| format!("{}:1: no `//!`", source.path)).collect())
}

/// Checks that no file is named for a drawer.
pub(crate) fn check_drawers(workspace: &Workspace) -> Outcome {
    let is_drawer = |path: &str| {
        let stem = Path::new(path).file_stem().unwrap_or_default();
        DRAWERS.iter().any(|drawer| stem == *drawer)
    };
    let drawers = workspace.sources.iter().filter(|source| is_drawer(&source.path));
    Outcome::none_of(drawers.map(|source| source.path.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_a_first_line_are_seen() {
        let workspace = Workspace::of(&[("a.rs", "//! A.\n"), ("b.rs", "use x;\n//! B.\n")]);
        assert_eq!(check_first_lines(&workspace).offenders, ["b.rs:1: no `//!`"]);
    }

    #[test]
    fn drawers_are_seen() {
        let workspace = Workspace::of(&[("a/util.rs", ""), ("a/utility.rs", ""), ("misc.rs", "")]);
        assert_eq!(check_drawers(&workspace).offenders, ["a/util.rs", "misc.rs"]);
    }
}
