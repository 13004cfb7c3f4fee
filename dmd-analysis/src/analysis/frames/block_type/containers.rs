//! The types that functions of collections allocate, by the source file of the function: the
//! standard library's and those of crates.

use super::super::parts::Parts;
use super::super::source_file::{is_hashbrown, registry_crate};
use super::super::trim::library_frames;
use super::arguments::split_arguments;
use super::bytes::{self, ends};

/// The crates whose functions show the type of a block, as the standard library's do.
const CRATES: [&str; 6] =
    ["indexmap", "thin_vec", "bumpalo", "allocator_api2", "smallvec", "triomphe"];

/// Returns the number of frames in front that are the allocator's or a collection's.
pub(super) fn container_frames(frames: &[Parts<'_>]) -> usize {
    let library = library_frames(frames);
    let is_container = |parts: &&Parts<'_>| parts.is_library() || crate_of(parts).is_some();
    library + frames[library..].iter().take_while(is_container).count()
}

/// Returns whether the program calls the allocator itself, as code with a layout of its own does.
pub(super) fn is_by_hand(library: &[Parts<'_>], caller: &Parts<'_>) -> bool {
    const BY_HAND: [&str; 4] = ["alloc", "alloc_zeroed", "realloc", "allocate"];
    let is_call = |parts: &Parts<'_>| {
        let name = parts.function.rsplit("::").next().unwrap_or_default();
        parts.file.is_some_and(|file| ends(file, &["alloc.rs"])) && BY_HAND.contains(&name)
    };
    caller.file.is_some() && library.last().is_some_and(is_call)
}

/// Returns the collection's crate that a frame is from, with underscores.
fn crate_of(parts: &Parts<'_>) -> Option<&'static str> {
    let krate = registry_crate(parts.file?)?;
    CRATES.into_iter().find(|known| *known == &*krate)
}

/// Returns the type that one function of a collection shows, if any. `outer` are those around it.
pub(super) fn type_of(parts: &Parts<'_>, outer: &[Parts<'_>]) -> Option<String> {
    let file = parts.file?;
    let krate = crate_of(parts);
    if krate == Some("bumpalo") {
        return Some("chunk of bumpalo::Bump".to_owned());
    }
    let (function, arguments) = split_arguments(parts.name?)?;
    // A closure has the arguments of the function around it, which is more precise.
    if function.starts_with('{') {
        return None;
    }
    let grows =
        function.contains("grow") || function.contains("reserve") || function.contains("finish");
    if parts.out_of_line && grows && krate.is_none() {
        return None;
    }
    let first = *arguments.first()?;
    match krate {
        Some("indexmap") => return Some(index_map(file, &arguments)),
        Some("thin_vec") => return Some(format!("ThinVec<{first}>")),
        Some("smallvec") => return Some(format!("SmallVec<{first}>")),
        Some("triomphe") => return Some(format!("triomphe::Arc<{first}>")),
        _ => {}
    }
    if is_hashbrown(file) {
        return table(file, &arguments, outer);
    }
    // allocator-api2 has the standard library's files under another folder.
    if !file.contains("alloc/src/") && krate.is_none() {
        return None;
    }
    of_std(parts, function, first, outer)
}

/// Returns the type that a function of hashbrown shows. An index of an `IndexMap` is such a table.
fn table(file: &str, arguments: &[&str], outer: &[Parts<'_>]) -> Option<String> {
    if outer.iter().any(|parts| crate_of(parts) == Some("indexmap")) {
        // The functions of indexmap around it have the types of keys and values.
        let whole = outer.iter().filter(|parts| crate_of(parts) == Some("indexmap"));
        let mut known = whole.filter_map(|parts| {
            let (function, arguments) = split_arguments(parts.name?)?;
            let is_certain = !parts.folded && !function.starts_with('{') && arguments.len() > 1;
            is_certain.then(|| index_map(parts.file.unwrap_or_default(), &arguments))
        });
        return Some(known.next().unwrap_or_else(|| "IndexMap".to_owned()) + " table");
    }
    match arguments {
        [key, value, ..] if ends(file, &["map.rs"]) => {
            Some(format!("HashMap table of ({key}, {value})"))
        }
        [key, ..] if ends(file, &["set.rs"]) => Some(format!("HashMap table of ({key}, ())")),
        [entry, ..] if file.contains("/raw") || ends(file, &["table.rs"]) => {
            Some(format!("HashMap table of {entry}"))
        }
        _ => None,
    }
}

/// Returns the map or set that a function of indexmap is about.
fn index_map(file: &str, arguments: &[&str]) -> String {
    match arguments {
        [key, ..] if ends(file, &["set.rs"]) => format!("IndexSet<{key}>"),
        [key, "()", ..] => format!("IndexSet<{key}>"),
        [key, value, ..] => format!("IndexMap<{key}, {value}>"),
        _ => "IndexMap".to_owned(),
    }
}

/// Returns the type that a function of the standard library with first type argument `of`
/// allocates.
fn of_std(parts: &Parts<'_>, function: &str, of: &str, outer: &[Parts<'_>]) -> Option<String> {
    let file = parts.file?;
    let slice = |pointer: &str, of: &str| match of {
        "u8" => bytes::pointee(pointer, parts, outer),
        of => format!("{pointer}<[{of}]>"),
    };
    if ends(file, &["boxed.rs", "boxed/convert.rs"]) {
        return Some(if !function.contains("slice") {
            boxed(of)
        } else if of == "u8" {
            bytes::buffer(outer).to_owned()
        } else {
            format!("[{of}]")
        });
    }
    if file.contains("/btree/") {
        return None;
    }
    for (pointer, name) in [("Arc", "sync.rs"), ("Rc", "rc.rs")] {
        if ends(file, &[name]) {
            let element = if function.contains("slice") { Some(of) } else { element(of) };
            return Some(
                element.map_or_else(|| format!("{pointer}<{of}>"), |of| slice(pointer, of)),
            );
        }
    }
    let is_buffer =
        file.contains("/raw_vec") || file.contains("/vec/") || file.contains("/vec_deque/");
    if !is_buffer && !ends(file, &["slice.rs", "vec.rs"]) {
        return None;
    }
    Some(match of {
        "u8" => bytes::buffer(outer).to_owned(),
        _ => bucket(of).map_or_else(|| format!("[{of}]"), |of| format!("IndexMap<{of}> entries")),
    })
}

/// Returns the type of the elements of a slice; `None` for arrays and other types.
fn element(of: &str) -> Option<&str> {
    let inside = of.strip_prefix('[')?.strip_suffix(']')?;
    let is_length = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_array = inside.rsplit_once("; ").is_some_and(|(_, length)| is_length(length));
    (!is_array).then_some(inside)
}

/// Returns the arguments of an entry of indexmap.
fn bucket(of: &str) -> Option<&str> {
    of.strip_prefix("indexmap::Bucket<")?.strip_suffix('>')
}

/// Returns the type of a boxed value. Internal types of the library are named by their owner.
fn boxed(of: &str) -> String {
    let inner = |prefix: &str| of.strip_prefix(prefix)?.strip_suffix('>');
    if let Some(value) = inner("alloc::sync::ArcInner<") {
        return format!("Arc<{value}>");
    }
    if let Some(value) = inner("alloc::rc::RcInner<").or_else(|| inner("alloc::rc::RcBox<")) {
        return format!("Rc<{value}>");
    }
    for node in ["LeafNode<", "InternalNode<"] {
        if let Some(entries) = inner(&format!("alloc::collections::btree::node::{node}")) {
            return format!("BTreeMap<{entries}> node");
        }
    }
    format!("Box<{of}>")
}
