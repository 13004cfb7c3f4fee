//! Owned texts and paths, which the standard library allocates as bytes.

use super::super::parts::Parts;

/// Returns whether a file is one of these, by its end.
pub(super) fn ends(file: &str, names: &[&str]) -> bool {
    names.iter().any(|name| file.strip_suffix(name).is_some_and(|rest| rest.ends_with('/')))
}

/// Returns the type of a buffer of bytes: that of a string, if a function of `String` is around it.
pub(super) fn buffer(outer: &[Parts<'_>]) -> &'static str {
    let is_string =
        |parts: &Parts<'_>| parts.file.is_some_and(|file| ends(file, &["string.rs", "str.rs"]));
    if outer.iter().any(is_string) { "String" } else { "[u8]" }
}

/// Returns the type of bytes behind a pointer such as `Arc`: `Arc<str>` if a function without type
/// arguments of the pointer's file made them.
pub(super) fn pointee(pointer: &str, inner: &Parts<'_>, outer: &[Parts<'_>]) -> String {
    let mut texts = outer.iter().filter_map(|parts| {
        let (name, file) = (parts.name?, parts.file?);
        if ends(file, &["sync.rs", "rc.rs", "boxed.rs", "boxed/convert.rs"]) {
            return (!name.contains('<')).then_some("str");
        }
        match () {
            () if ends(file, &["c_str.rs"]) => Some("CStr"),
            () if ends(file, &["os_str.rs"]) => Some("OsStr"),
            () if ends(file, &["path.rs"]) => Some("Path"),
            () => None,
        }
    });
    if let Some(text) = texts.next_back() {
        return format!("{pointer}<{text}>");
    }
    // A call in tail position leaves no frame: `Arc<str>::from` ends in that of `Arc<[u8]>`.
    let outermost = outer.last().unwrap_or(inner);
    let is_optimised = !inner.out_of_line || outer.iter().any(|parts| !parts.out_of_line);
    if outermost.out_of_line && is_optimised {
        format!("one of {pointer}<[u8]>, {pointer}<str>")
    } else {
        format!("{pointer}<[u8]>")
    }
}
