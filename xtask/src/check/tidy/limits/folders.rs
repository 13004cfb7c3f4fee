//! The number of modules in a folder.

use std::collections::{BTreeMap, BTreeSet};

use super::super::files::{CRATES, Workspace};
use super::super::outcome::Outcome;

const ENTRIES: usize = 12;

/// Checks that a folder has at most twelve modules. A module and its folder count once.
///
/// Crate roots (`lib.rs`, `main.rs`) do not count. `impls` may have a file for every crate it
/// supports.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let mut folders: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for name in CRATES {
        let root = format!("{name}/src");
        for source in workspace.below(&root) {
            let mut path = source.path.strip_suffix(".rs").unwrap_or(&source.path);
            if ["lib", "main"].iter().any(|name| path == format!("{root}/{name}")) {
                continue;
            }
            while let Some((folder, entry)) = path.rsplit_once('/').filter(|_| path != root) {
                folders.entry(folder).or_default().insert(entry);
                path = folder;
            }
        }
    }
    let is_crowded = |(folder, entries): &(&str, BTreeSet<&str>)| {
        entries.len() > ENTRIES && !folder.ends_with("/impls")
    };
    let offenders = folders.into_iter().filter(is_crowded);
    let offenders =
        offenders.map(|(folder, entries)| format!("{folder}: {} modules", entries.len()));
    Outcome::none_of(offenders.collect()).with_summary(format!("at most {ENTRIES} modules"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crowd(folder: &str, count: usize) -> Vec<String> {
        (0..count).map(|number| format!("dmd/src/{folder}m{number}.rs")).collect()
    }

    #[test]
    fn a_crowded_folder_is_seen() {
        let mut paths = crowd("", 11);
        paths.extend(["dmd/src/lib.rs", "dmd/src/room.rs", "dmd/src/room/a.rs"].map(str::to_owned));
        paths.extend(crowd("impls/", 13));
        let of = |paths: &[String]| {
            let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "")).collect();
            check(&Workspace::of(&files)).offenders
        };
        // `impls` itself is the thirteenth.
        assert_eq!(of(&paths), ["dmd/src: 13 modules"]);
        assert_eq!(of(&paths[1..]), [""; 0]);
    }
}
