//! The texts that groups of a census are named by, whatever source the blocks come from.

use super::node::Key;

/// The type of a block whose frames do not tell it, by the type through which it is reported.
pub fn owned_by(owner: Option<&str>) -> Option<Key> {
    owner.map(|owner| Key::text(&format!("owned by {owner}")))
}

/// The paths of reporters, cut at a depth; those that are the same then are named once.
pub fn reporters<'p>(paths: impl Iterator<Item = &'p str>, depth: Option<u32>) -> Option<Key> {
    let mut names: Vec<&str> = Vec::new();
    for path in paths {
        let end = depth
            .and_then(|depth| path.match_indices('/').nth(depth as usize - 1).map(|(end, _)| end));
        let name = end.map_or(path, |end| &path[..end]);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| Key::text(&names.join(" and ")))
}

/// Fields, each once.
pub fn fields(names: impl Iterator<Item = String>) -> Option<Key> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    (!all.is_empty()).then(|| Key::text(&all.join(" and ")))
}

/// Names are not unique, so the number stands beside them.
pub fn named_thread(name: Option<&str>, number: u32) -> Key {
    Key::Text(match name {
        Some(name) => format!("{name} ({number})").into(),
        None => format!("thread {number}").into(),
    })
}
