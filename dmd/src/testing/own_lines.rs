//! The functions and lines of a stack that are the program's own.

use std::ffi::c_void;

use crate::stack::site::{self, SiteId};

/// Returns the program's own functions on the stack of a block, innermost first, with file and
/// line; none if the block has no stack.
pub(super) fn of(site: SiteId) -> Vec<String> {
    let stack = site::site(site).map_or(0, |site| site.stack);
    of_stack(stack)
}

/// Returns the functions on a stack, without the allocator's, the standard library's and the test
/// harness's.
pub(super) fn of_stack(stack: u32) -> Vec<String> {
    let mut lines = Vec::new();
    for address in site::frames(stack) {
        // A return address is the address after the call.
        let call = std::ptr::without_provenance_mut::<c_void>(address.wrapping_sub(1));
        backtrace::resolve(call, |symbol| {
            let Some(name) = symbol.name().map(|name| format!("{name:#}")) else { return };
            let file = symbol.filename().map(|file| file.display().to_string());
            if is_own(&name, file.as_deref()) {
                lines.push(match (file, symbol.lineno()) {
                    (Some(file), Some(line)) => format!("{name} ({file}:{line})"),
                    _ => name,
                });
            }
        });
    }
    lines
}

/// The beginnings of the names of functions that every allocation has in common.
const LIBRARY: &[&str] = &[
    "__rust",
    "alloc::",
    "<alloc::",
    "core::",
    "<core::",
    "std::",
    "<std::",
    "__libc",
    "dmd::stack::",
    "dmd::hook::",
    "<dmd::hook::",
    "dmd::event::",
    "test::",
    "start_thread",
    "clone3",
    "__GI_",
];

/// Returns whether a function is the program's own. An impl of the standard library for the
/// program's type has the library's file, if debug information tells it. Else one for a type
/// without a path is the library's (`<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem`).
fn is_own(name: &str, file: Option<&str>) -> bool {
    let begins = |text: &str| LIBRARY.iter().any(|prefix| text.starts_with(prefix));
    let implemented = name.strip_prefix('<').and_then(|rest| rest.split_once(" as "));
    let is_impl = implemented.is_some_and(|(of, what)| !of.contains("::") && begins(what));
    let is_library = begins(name) || is_impl;
    !is_library && !file.is_some_and(|file| file.starts_with("/rustc/"))
}

#[cfg(test)]
mod tests {
    use super::is_own;

    #[test]
    fn impls_of_the_standard_library_are_not_the_programs() {
        let from_elem = "<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem";
        let file = "/rustc/1/library/alloc/src/vec/spec_from_elem.rs";
        let table = [
            ("shop::order", Some("src/shop.rs"), true),
            ("<shop::Order as core::clone::Clone>::clone", Some("src/shop.rs"), true),
            ("main", None, true),
            (from_elem, Some(file), false),
            (from_elem, None, false),
            ("<shop::Order as core::clone::Clone>::clone", None, true),
            ("alloc::alloc::alloc", None, false),
        ];
        for (name, file, expected) in table {
            assert_eq!(is_own(name, file), expected, "{name}");
        }
    }
}
