//! The imports between the rooms of a crate, which form a DAG.
//!
//! A room is a top-level module of `src`. The crate roots `lib.rs` and `main.rs` are no rooms: a
//! path through a root counts as an import of the room that the item comes from. Tests do not
//! count.

mod graph;
mod modules;
mod paths;

use std::collections::BTreeSet;

use self::graph::{Graph, Site};
use self::modules::{Modules, Name};
use super::files::Workspace;
use super::outcome::Outcome;

/// The crates that have rooms: all but the derive, whose few files are one pipeline.
const CRATES: [&str; 6] =
    ["memreport", "dmd", "dmd-analysis", "about-memory", "memreport-fleet", "xtask"];

/// The largest number of files in a room that may import each other.
const MOST_IN_A_CYCLE: usize = 2;

/// Stands for a crate root that defines items itself, which only a cycle can use.
const ROOT: &str = "(lib.rs or main.rs)";

/// Checks that the rooms of each crate import each other without a cycle, and draws them.
pub(crate) fn check_rooms(workspace: &Workspace) -> Outcome {
    let mut offenders = Vec::new();
    for name in CRATES {
        let graph = between_rooms(&Modules::of(workspace, name));
        for component in graph.components().iter().filter(|component| component.len() > 1) {
            offenders.push(format!("{name}: a cycle among rooms: {}", list(component)));
            offenders.extend(graph.cycle(component));
        }
    }
    let drawing = drawing(workspace);
    Outcome { drawing, ..Outcome::none_of(offenders) }
}

/// Checks that no more than two files of a room import each other.
pub(crate) fn check_inside(workspace: &Workspace) -> Outcome {
    let mut offenders = Vec::new();
    for name in CRATES {
        let graph = inside_rooms(&Modules::of(workspace, name));
        for component in graph.components() {
            if component.len() > MOST_IN_A_CYCLE {
                offenders.push(format!("{name}: a cycle among files: {}", list(&component)));
                offenders.extend(graph.cycle(&component));
            }
        }
    }
    Outcome::none_of(offenders).with_summary(format!("at most {MOST_IN_A_CYCLE} files in a cycle"))
}

/// Checks that ARCHITECTURE.md shows the drawing between its two markers.
pub(crate) fn check_map(workspace: &Workspace) -> Outcome {
    let text = workspace.document("ARCHITECTURE.md");
    let Some(shown) = between(text, "<!-- rooms -->", "<!-- /rooms -->") else {
        let missing = "ARCHITECTURE.md: no markers `<!-- rooms -->` and `<!-- /rooms -->`";
        return Outcome::none_of(vec![missing.to_owned()]);
    };
    let is_fence = |line: &&str| line.starts_with("```");
    let shown: Vec<&str> = shown.trim().lines().filter(|line| !is_fence(line)).collect();
    let drawn = drawing(workspace);
    if shown == drawn.lines().collect::<Vec<_>>() {
        return Outcome::none_of(Vec::new());
    }
    Outcome::none_of(vec![
        "ARCHITECTURE.md: the rooms have changed: `cargo xtask tidy rooms`".into(),
    ])
}

fn list(names: &BTreeSet<&str>) -> String {
    names.iter().copied().collect::<Vec<_>>().join(", ")
}

fn between<'text>(text: &'text str, open: &str, close: &str) -> Option<&'text str> {
    Some(text.split_once(open)?.1.split_once(close)?.0)
}

/// Draws the rooms of all crates: each room before those that it imports.
fn drawing(workspace: &Workspace) -> String {
    let crates = CRATES.map(|name| {
        let graph = between_rooms(&Modules::of(workspace, name));
        if graph.is_empty() { String::new() } else { format!("{name}\n{graph}") }
    });
    let drawn: Vec<&str> = crates.iter().map(|text| text.trim_end()).collect();
    drawn.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// Returns the imports between the rooms of a crate.
fn between_rooms(modules: &Modules) -> Graph {
    let room = |name: &Name| name.first().cloned();
    let mut graph = Graph::default();
    for name in modules.names().filter_map(room) {
        graph.add_node(name);
    }
    for import in modules.imports() {
        let Some(from) = room(&import.from) else { continue };
        let to = room(&import.to).unwrap_or_else(|| ROOT.to_owned());
        if to == ROOT {
            // Its other half: the root declares every room.
            let site = Site { file: "the crate root".to_owned(), line: 1 };
            graph.add_edge(to.clone(), from.clone(), site);
        }
        graph.add_edge(from, to, import.site);
    }
    graph
}

/// Returns the imports between the files of each room.
///
/// Imports between a module and one below it do not count. A parent declares its children and calls
/// them, and they use its types: nearly every folder would be a cycle, and none of them a defect.
fn inside_rooms(modules: &Modules) -> Graph {
    let mut graph = Graph::default();
    for import in modules.imports() {
        let (from, to) = (&import.from, &import.to);
        let is_one_room = !from.is_empty() && from.first() == to.first();
        if is_one_room && !from.starts_with(to) && !to.starts_with(from) {
            graph.add_edge(from.join("::"), to.join("::"), import.site);
        }
    }
    graph
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIDY: [(&str, &str); 6] = [
        ("dmd/src/lib.rs", "mod hook; mod table; mod mem; pub use table::Block;"),
        ("dmd/src/hook.rs", "use crate::{Block, mem};\n#[cfg(test)]\nmod tests { use crate::x; }"),
        ("dmd/src/table.rs", "mod map;\nfn f() { crate::mem::map(); map::f() }"),
        ("dmd/src/table/map.rs", "use super::Block;"),
        ("dmd/src/table/tests.rs", "use crate::hook;"),
        ("dmd/src/mem.rs", "//! See [`crate::hook`].\nconst A: &str = \"crate::hook\";"),
    ];

    fn with(files: &[(&'static str, &'static str)]) -> Workspace {
        Workspace::of(&[&TIDY[..], files].concat())
    }

    #[test]
    fn rooms_are_drawn_importers_first() {
        let outcome = check_rooms(&with(&[]));
        assert!(outcome.holds, "{outcome}");
        assert_eq!(outcome.drawing, "dmd\n  hook → mem, table\n  table → mem");
    }

    #[test]
    fn a_cycle_between_rooms_is_seen() {
        let outcome = check_rooms(&with(&[("dmd/src/mem/pages.rs", "\nuse crate::hook::f;")]));
        assert_eq!(
            outcome.offenders,
            [
                "dmd: a cycle among rooms: hook, mem, table",
                "  dmd/src/hook.rs:1: hook imports mem",
                "  dmd/src/mem/pages.rs:2: mem imports hook",
            ]
        );
    }

    #[test]
    fn an_item_of_the_root_itself_is_seen() {
        let outcome = check_rooms(&with(&[("dmd/src/mem/pages.rs", "use crate::Defined;")]));
        assert_eq!(outcome.offenders.len(), 3, "{outcome}");
    }

    #[test]
    fn a_cycle_of_three_files_is_seen_and_one_of_two_is_allowed() {
        let two = [
            ("dmd/src/table/a.rs", "use super::b::B;"),
            ("dmd/src/table/b.rs", "use crate::table::{a::A, map::{self, Map}};"),
        ];
        assert!(check_inside(&with(&two)).holds);
        let three = [two[0], two[1], ("dmd/src/table/map.rs", "use super::a;")];
        let files: Vec<_> = TIDY.into_iter().filter(|(path, _)| *path != three[2].0).collect();
        let outcome = check_inside(&Workspace::of(&[&files[..], &three].concat()));
        assert_eq!(
            outcome.offenders,
            [
                "dmd: a cycle among files: table::a, table::b, table::map",
                "  dmd/src/table/a.rs:1: table::a imports table::b",
                "  dmd/src/table/b.rs:1: table::b imports table::a",
            ]
        );
    }

    #[test]
    fn the_map_is_compared_with_the_drawing() {
        let map = "\n<!-- rooms -->\n```text\ndmd\n  hook → mem, table\n  table → mem\n```\n";
        let right = format!("{map}<!-- /rooms -->\n");
        assert!(
            check_map(&Workspace::of(&[&TIDY[..], &[("ARCHITECTURE.md", &right)]].concat())).holds
        );
        let wrong = right.replace("mem, table", "table");
        let outcome =
            check_map(&Workspace::of(&[&TIDY[..], &[("ARCHITECTURE.md", &wrong)]].concat()));
        assert!(!outcome.holds);
        let outcome = check_map(&with(&[]));
        assert!(outcome.offenders[0].starts_with("ARCHITECTURE.md: no markers"), "{outcome}");
    }
}
