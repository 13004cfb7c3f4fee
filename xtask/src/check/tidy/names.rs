//! The names of files and folders, and the first lines of files.

use super::files::Workspace;
use super::outcome::Outcome;

/// Names that fit any content, and therefore describe none.
const VAGUE: [&str; 6] = ["util", "utils", "common", "helpers", "manager", "misc"];

/// Checks that every file begins with a line of module documentation.
pub(crate) fn check_first_lines(workspace: &Workspace) -> Outcome {
    let silent = workspace.sources.iter().filter(|source| !source.text.starts_with("//!"));
    Outcome::none_of(silent.map(|source| format!("{}:1: no `//!`", source.path)).collect())
}

/// Checks that no file and no folder has a name that describes no content.
pub(crate) fn check_vague(workspace: &Workspace) -> Outcome {
    let vague = workspace.sources.iter().filter_map(|source| {
        let name = source.path.split('/').find(|part| VAGUE.contains(&stem(part)))?;
        Some(format!("{}: `{}` describes no content", source.path, stem(name)))
    });
    Outcome::none_of(vague.collect())
}

fn stem(name: &str) -> &str {
    name.strip_suffix(".rs").unwrap_or(name)
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
    fn vague_names_of_files_and_folders_are_seen() {
        let files = ["a/util.rs", "a/utility.rs", "misc.rs", "tests/common/mod.rs"];
        let workspace = Workspace::of(&files.map(|file| (file, "")));
        assert_eq!(
            check_vague(&workspace).offenders,
            [
                "a/util.rs: `util` describes no content",
                "misc.rs: `misc` describes no content",
                "tests/common/mod.rs: `common` describes no content",
            ]
        );
    }
}
