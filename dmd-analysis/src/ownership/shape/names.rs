//! Names of types as the source has them.

/// Shortens the name of a type: without the allocators, and with the standard library's types
/// without their paths.
pub(in crate::ownership) fn short(name: &str) -> String {
    let mut text = name.replace(", alloc::alloc::Global", "");
    text = text.replace(", std::hash::random::RandomState", "");
    without_paths(&text)
}

/// Returns the short name of the value in an `Rc` or `Arc`, if this is the short name of its block:
/// counts and value.
pub(in crate::ownership) fn shared_value(name: &str) -> Option<&str> {
    let inside = |prefix: &str| name.strip_prefix(prefix)?.strip_suffix('>');
    inside("RcInner<").or_else(|| inside("ArcInner<"))
}

/// Removes the paths in front of the standard library's names.
fn without_paths(name: &str) -> String {
    const ROOTS: [&str; 4] = ["alloc", "core", "std", "hashbrown"];
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(start) = rest.find(is_word) {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = path_end(rest);
        let path = &rest[..end];
        let root = path.split("::").next().unwrap_or_default();
        let last = path.rsplit("::").next().unwrap_or(path);
        let is_std = path.contains("::") && ROOTS.contains(&root) && !out.ends_with("::");
        out.push_str(if is_std { last } else { path });
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the end of the path that a text begins with.
fn path_end(text: &str) -> usize {
    let mut end = 0;
    loop {
        let word = text[end..].find(|c| !is_word(c)).map_or(text.len(), |length| end + length);
        match text[word..].strip_prefix("::") {
            Some(after) if after.starts_with(is_word) => end = word + 2,
            _ => return word,
        }
    }
}

/// Returns whether names leave out the fields of this type, because it is a library's.
pub(super) fn is_library(name: &str) -> bool {
    const LIBRARIES: [&str; 12] = [
        "alloc::",
        "core::",
        "std::",
        "hashbrown::",
        "parking_lot::",
        "lock_api::",
        "once_cell::",
        "indexmap::",
        "spin::",
        "arc_swap::",
        "dashmap::",
        "smallvec::",
    ];
    LIBRARIES.iter().any(|library| name.starts_with(library))
}

/// Returns whether a name is one that the user wrote, with `…` or `*` for any text.
pub(super) fn matches(wanted: &str, name: &str) -> bool {
    let Some((first, rest)) = wanted.split_once(['…', '*']) else { return wanted == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split(['…', '*']).collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        let Some(at) = left.find(piece) else { return false };
        left = &left[at + piece.len()..];
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::{matches, shared_value, short};

    #[test]
    fn counts_beside_a_value_are_not_in_its_name() {
        for (name, expected) in [
            ("ArcInner<Vec<u8>>", Some("Vec<u8>")),
            ("RcInner<dyn shop::Shape>", Some("dyn shop::Shape")),
            ("Vec<ArcInner<u8>>", None),
            ("ArcInner", None),
        ] {
            assert_eq!(shared_value(name), expected, "{name}");
        }
    }

    #[test]
    fn names_are_as_in_the_source() {
        let table = [
            ("alloc::vec::Vec<alloc::string::String, alloc::alloc::Global>", "Vec<String>"),
            (
                "std::collections::hash::map::HashMap<alloc::sync::Arc<str, alloc::alloc::Global>, \
                 u32, std::hash::random::RandomState>",
                "HashMap<Arc<str>, u32>",
            ),
            ("shop::core::Cart<&str>", "shop::core::Cart<&str>"),
            ("alloc::boxed::Box<dyn shop::Shape, alloc::alloc::Global>", "Box<dyn shop::Shape>"),
            ("(u8, [core::option::Option<u8>; 3])", "(u8, [Option<u8>; 3])"),
        ];
        for (name, expected) in table {
            assert_eq!(short(name), expected);
        }
    }

    #[test]
    fn excluded_names_may_leave_out_a_part() {
        for (wanted, name, expected) in [
            ("NonNull<GcBox<…>>", "NonNull<GcBox<u8>>", true),
            ("NonNull<…GcBox<…>>", "NonNull<gc::GcBox<Vec<Vec<u8>>>>", true),
            ("NonNull<GcBox<*", "NonNull<GcBox<u8>>", true),
            ("NonNull<u8>", "NonNull<u8>", true),
            ("NonNull<u8>", "NonNull<u16>", false),
            ("GcBox<…>", "NonNull<GcBox<u8>>", false),
        ] {
            assert_eq!(matches(wanted, name), expected, "{wanted} {name}");
        }
    }
}
