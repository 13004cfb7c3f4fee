//! The type of a block, derived from the library functions that allocated it: `push<String>`
//! allocates a `[String]`.
//!
//! Debug information has the type arguments of a function. The innermost library function with a
//! type argument determines the type. Two kinds of functions are less certain, because their type
//! arguments may be those of another type. The first is code that the linker or the compiler merged
//! from several functions: without other frames its type is an example. The second is the
//! out-of-line growth of vectors, which the standard library shares between all types of a layout;
//! an inlined caller has the type then.

mod arguments;
mod bytes;
mod containers;

use super::parts::Parts;
use super::trim::{library_frames, parts};
use crate::read::{Dump, FrameId};
pub(super) use arguments::split_list;
use containers::{container_frames, type_of};

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
        if let Some(known) = library_type(&frames[..container_frames(&frames)]) {
            return Self::Known(without_std_paths(&known));
        }
        let library = library_frames(&frames);
        let Some(caller) = frames.get(library) else { return Self::Unknown };
        let function = path(caller, &frames[library..]);
        if containers::is_by_hand(&frames[..library], caller) {
            return Self::Known(format!("memory allocated by hand in {function}"));
        }
        Self::AllocatedIn(function)
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

/// Returns the type that the functions of libraries show, the innermost first.
fn library_type(frames: &[Parts<'_>]) -> Option<String> {
    let mut example = None;
    for (parts, outward) in (1..).map_while(|next| Some((frames.get(next - 1)?, &frames[next..]))) {
        let Some(found) = type_of(parts, outward) else { continue };
        if !parts.folded {
            return Some(found);
        }
        // A vector around merged growth has the type. What is around a merged box is another block.
        let is_buffer = found.starts_with('[');
        example.get_or_insert(found);
        if !is_buffer {
            break;
        }
    }
    example.map(|one| format!("one of {one} and types with equal code"))
}

/// Returns the path of a function. Debug information with lines alone has no path of an inlined
/// function; the function around it follows then.
fn path(caller: &Parts<'_>, outward: &[Parts<'_>]) -> String {
    let shown = caller.shown();
    if shown.contains("::") && !shown.contains('<') || caller.out_of_line {
        return shown.to_owned();
    }
    match outward.iter().find(|parts| parts.out_of_line) {
        Some(around)
            if !caller.function.contains("::")
                && around.function.contains("::")
                && !around.is_library() =>
        {
            format!("{shown}, inlined into {}", around.function)
        }
        _ => shown.to_owned(),
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

#[cfg(test)]
mod tests;
