//! The type of a block, derived from the library functions that allocated it: `push<String>`
//! allocates a `[String]`.
//!
//! Debug information has the type arguments of a function. The innermost library function with a
//! type argument determines the type. Two kinds of functions are ignored, because their type
//! arguments may be those of another type. The first is code that the linker or the compiler merged
//! from several functions. The second is the out-of-line growth of vectors, which the standard
//! library shares between all types of a layout; an inlined caller has the type then.

use super::parts::Parts;
use super::trim::{library_frames, parts};
use crate::read::{Dump, FrameId};

/// The type of a block, as far as its stack shows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum BlockType {
    /// The type from the frames.
    Known(String),
    /// The function that allocated the block, if the frames do not show the type.
    AllocatedIn(String),
    /// Unknown, because there is no stack.
    Unknown,
}

impl BlockType {
    /// Derives the type of a block from its allocation stack.
    #[must_use]
    pub fn of_trace(dump: &Dump, trace: &[FrameId]) -> Self {
        let frames = parts(dump, trace);
        let library = library_frames(&frames);
        if let Some(known) =
            (0..library).find_map(|at| type_of(&frames[at], &frames[at + 1..library]))
        {
            return Self::Known(without_std_paths(&known));
        }
        let caller =
            frames.get(library).map(|parts| parts.name.filter(|_| !parts.function.contains("::")));
        match caller {
            Some(name) => Self::AllocatedIn(name.unwrap_or(frames[library].function).to_owned()),
            None => Self::Unknown,
        }
    }

    /// Returns the type in words.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Known(name) => name.clone(),
            Self::AllocatedIn(function) => format!("type unknown, allocated in {function}"),
            Self::Unknown => "type unknown".to_owned(),
        }
    }
}

/// Shortens the paths of the standard library's types to their usual names.
fn without_std_paths(name: &str) -> String {
    const PATHS: [&str; 8] = [
        ", alloc::alloc::Global",
        "alloc::string::",
        "alloc::vec::",
        "alloc::boxed::",
        "alloc::sync::",
        "alloc::rc::",
        "alloc::borrow::",
        "core::option::",
    ];
    PATHS.iter().fold(name.to_owned(), |name, path| name.replace(path, ""))
}

/// Returns the type that one library function shows, if any. `outer` are the library functions
/// around it.
fn type_of(parts: &Parts<'_>, outer: &[Parts<'_>]) -> Option<String> {
    let name = parts.name?;
    let file = parts.file?;
    let (function, arguments) = split_arguments(name)?;
    // A closure has the arguments of the function around it, which is more precise.
    if function.starts_with('{') {
        return None;
    }
    let grows =
        function.contains("grow") || function.contains("reserve") || function.contains("finish");
    if parts.out_of_line && (parts.folded || grows) {
        return None;
    }
    let first = arguments.into_iter().find(|argument| !is_allocator(argument))?;
    let known = describe(file, function, first)?;
    // A byte buffer that a function of `String` allocates is the buffer of a string.
    let is_string =
        |parts: &Parts<'_>| parts.file.is_some_and(|file| ends(file, &["string.rs", "str.rs"]));
    Some(if known == "[u8]" && outer.iter().any(is_string) { "String".to_owned() } else { known })
}

/// Returns the type that a function of `file` with first type argument `of` allocates.
fn describe(file: &str, function: &str, of: &str) -> Option<String> {
    let table = file.contains("hashbrown")
        && (file.contains("/raw") || ends(file, &["map.rs", "table.rs"]));
    if table {
        return Some(format!("HashMap table of {of}"));
    }
    if !file.contains("alloc/src/") {
        return None;
    }
    if ends(file, &["boxed.rs", "boxed/convert.rs"]) {
        return Some(if function.contains("slice") { format!("[{of}]") } else { boxed(of) });
    }
    if file.contains("/btree/") {
        return None;
    }
    if ends(file, &["sync.rs"]) {
        return Some(shared("Arc", function, of));
    }
    if ends(file, &["rc.rs"]) {
        return Some(shared("Rc", function, of));
    }
    let is_buffer =
        file.contains("/raw_vec") || file.contains("/vec/") || file.contains("/vec_deque/");
    (is_buffer || ends(file, &["slice.rs", "vec.rs"])).then(|| format!("[{of}]"))
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

fn shared(pointer: &str, function: &str, of: &str) -> String {
    if function.contains("slice") {
        format!("{pointer}<[{of}]>")
    } else {
        format!("{pointer}<{of}>")
    }
}

fn ends(file: &str, names: &[&str]) -> bool {
    names.iter().any(|name| file.strip_suffix(name).is_some_and(|rest| rest.ends_with('/')))
}

fn is_allocator(argument: &str) -> bool {
    matches!(argument, "alloc::alloc::Global" | "Global" | "std::alloc::System")
        || argument.ends_with("Allocator")
}

/// Splits `push<String, Global>` into `push` and its arguments, or returns `None` without
/// arguments.
fn split_arguments(name: &str) -> Option<(&str, Vec<&str>)> {
    let inside = name.strip_suffix('>')?;
    let open = inside.find('<').filter(|&at| at > 0)?;
    let (function, list) = (&inside[..open], &inside[open + 1..]);
    let mut arguments = Vec::new();
    let (mut depth, mut start, mut before) = (0_i32, 0, ' ');
    for (at, c) in list.char_indices() {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            // The `>` of `fn() -> u8` closes nothing.
            '>' if before == '-' => {}
            '>' | ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                arguments.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    arguments.push(list[start..].trim());
    (depth == 0).then_some((function, arguments))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::BlockType;
    use crate::read::{Dump, Frame, FrameId, Symbol};

    /// Derives the type from frames, innermost first, one a line: `name @ file`, `(out of line)`,
    /// `(folded)`.
    fn derived(frames: &str) -> String {
        let frame = |line: &str| {
            let (name, file) = line.split_once(" @ ").unwrap();
            let (file, how) = file.split_once(" (").unwrap_or((file, ""));
            let symbol = Symbol {
                function: name.split('<').next().unwrap().into(),
                name: Some(name.into()),
                file: Some(Arc::from(file.replace("alloc/", "/rustc/0123/library/alloc/src/"))),
                line: Some(1),
                inlined: how.is_empty(),
                folded: how.starts_with("folded"),
            };
            Frame { text: "".into(), symbol: Some(Box::new(symbol)) }
        };
        let dump = Dump { frames: frames.lines().map(frame).collect(), ..Dump::default() };
        let trace: Vec<FrameId> =
            (0..dump.frames.len()).map(|at| FrameId(u32::try_from(at).unwrap())).collect();
        BlockType::of_trace(&dump, &trace).describe()
    }

    #[test]
    fn library_functions_show_the_type() {
        let table = [
            ("new<subject::Tree> @ alloc/boxed.rs", "Box<subject::Tree>"),
            (
                "f @ alloc/alloc.rs\nwith_capacity_in<u32, alloc::alloc::Global> @ alloc/raw_vec/mod.rs",
                "[u32]",
            ),
            (
                "grow<alloc::alloc::Global> @ alloc/raw_vec.rs\npush<String, alloc::alloc::Global> @ alloc/vec/mod.rs",
                "[String]",
            ),
            ("new<alloc::sync::ArcInner<subject::User>> @ alloc/boxed.rs", "Arc<subject::User>"),
            ("new<alloc::rc::RcInner<[u8; 4]>> @ alloc/boxed.rs", "Rc<[u8; 4]>"),
            (
                "{closure#0}<u8, alloc::alloc::Global> @ alloc/sync.rs\nallocate_for_layout<[u8], F> @ alloc/sync.rs",
                "Arc<[u8]>",
            ),
            (
                "reserve<alloc::sync::Arc<X, alloc::alloc::Global>, A> @ alloc/vec/mod.rs",
                "[Arc<X>]",
            ),
            (
                "new<alloc::collections::btree::node::LeafNode<u32, fn(u8) -> u8>> @ alloc/boxed.rs",
                "BTreeMap<u32, fn(u8) -> u8> node",
            ),
            (
                "reserve_rehash<(u32, String), F> @ /r/hashbrown-0.15.2/src/raw/mod.rs",
                "HashMap table of (u32, String)",
            ),
            (
                "with_capacity_in<u8, alloc::alloc::Global> @ alloc/raw_vec/mod.rs\nto_owned @ alloc/str.rs",
                "String",
            ),
        ];
        for (frames, expected) in table {
            assert_eq!(derived(&format!("{frames}\nbuild @ /home/me/src/main.rs")), expected);
        }
    }

    #[test]
    fn shared_code_shows_no_type() {
        let growth = "grow_one<gimli::AttributeValue, alloc::alloc::Global> @ alloc/raw_vec/mod.rs (out of line)";
        let table = [
            // The inlined caller has the type, unlike the shared growth.
            (vec![growth, "push<String, alloc::alloc::Global> @ alloc/vec/mod.rs"], "[String]"),
            (vec![growth], "type unknown, allocated in build"),
            (
                vec!["with_capacity_in<u32, alloc::alloc::Global> @ alloc/raw_vec/mod.rs (folded)"],
                "type unknown, allocated in build",
            ),
        ];
        for (frames, expected) in table {
            assert_eq!(
                derived(&format!("{}\nbuild @ /home/me/src/main.rs", frames.join("\n"))),
                expected
            );
        }
        assert_eq!(derived(""), "type unknown");
    }
}
