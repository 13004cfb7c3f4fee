//! A frame taken apart into function, file and line, and whose code it is.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::block_type::split_list;
use super::source_file::{is_hashbrown, is_rust_library, registry_crate};
use super::tracker::{is_tracker_file, is_tracker_function};
use crate::read::{Frame, Symbol};

/// A frame taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    pub(crate) function: &'a str,
    /// The function's own name with type arguments, if debug information has it.
    pub(crate) name: Option<&'a str>,
    pub(crate) file: Option<&'a str>,
    pub(crate) line: Option<u32>,
    /// True if the code has an address of its own, so that several functions may share it.
    pub(crate) out_of_line: bool,
    /// True if the linker merged several functions into this code. The name is that of one then.
    pub(crate) folded: bool,
    /// The path of the program or library with the code, if it was symbolicated.
    pub(crate) module: Option<&'a str>,
}

impl<'a> Parts<'a> {
    /// Returns the parts of a frame: from its symbol if it was looked up, or else from its text.
    pub(crate) fn of(frame: &'a Frame) -> Self {
        match &frame.symbol {
            Some(symbol) => Self::of_symbol(symbol),
            None => Self::of_text(&frame.text),
        }
    }

    fn of_symbol(symbol: &'a Symbol) -> Self {
        Self {
            function: &symbol.function,
            name: symbol.name.as_deref(),
            file: symbol.file.as_deref(),
            line: symbol.line,
            out_of_line: !symbol.inlined,
            folded: symbol.folded,
            module: symbol.module.as_deref(),
        }
    }

    /// Returns parts that only have words, for where there is no frame.
    pub(crate) fn of_words(words: &'a str) -> Self {
        Self {
            function: words,
            name: None,
            file: None,
            line: None,
            out_of_line: true,
            folded: false,
            module: None,
        }
    }

    /// Parses `#00: function (file:line)` or `#00: function[file:line]`.
    fn of_text(text: &'a str) -> Self {
        let text = text.split_once(": ").map_or(text, |(_, text)| text);
        let place = text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
        let (function, place) =
            place.map_or((text, None), |(function, place)| (function, Some(place)));
        let (file, line) = match place.and_then(|place| place.rsplit_once(':')) {
            Some((file, line)) => (Some(file), line.parse().ok()),
            None => (place, None),
        };
        Self { function, name: None, file, line, out_of_line: true, folded: false, module: None }
    }

    /// Returns the function as it is printed: with its path if the symbol table has one, or else
    /// with its type arguments from debug information.
    pub(crate) fn shown(&self) -> &'a str {
        let name = self.name.filter(|_| !self.folded && !self.function.contains("::"));
        name.unwrap_or(self.function)
    }

    /// Returns whether the code belongs to Rust's own libraries, to an allocator or to the tracker.
    pub(crate) fn is_library(&self) -> bool {
        // C++'s library is called `std`, too.
        const PATHS: [&str; 6] =
            ["alloc::", "core::", "std::", "__gnu_cxx::", "hashbrown::", "mozilla::dmd::"];
        const C: [&str; 8] = [
            "malloc",
            "calloc",
            "realloc",
            "memalign",
            "posix_memalign",
            "aligned_alloc",
            "operator new",
            "__libc_",
        ];
        // Code that runs before Rust's `main` and its threads, and code that catches panics.
        const STARTS: [&str; 6] =
            ["_start", "__libc_start_main", "start_thread", "clone", "clone3", "__rust_try"];
        let is_of_library = |function: &str| {
            let path = function.trim_start_matches(['<', '&']);
            is_tracker_function(path)
                || is_impl_of_library(function)
                || PATHS.iter().any(|prefix| path.starts_with(prefix))
                || C.iter().any(|prefix| function.starts_with(prefix))
        };
        self.is_allocator_entry()
            || (self.file.is_none() && self.function == "main")
            || STARTS.contains(&self.function)
            || self.file.is_some_and(|file| {
                is_rust_library(file) || is_hashbrown(file) || is_tracker_file(file)
            })
            || self.functions().all(is_of_library)
    }

    /// Returns whether the function is the entry from a program into its allocator. Frames further
    /// in are the allocator's or the tracker's, whichever crate they are from.
    pub(crate) fn is_allocator_entry(&self) -> bool {
        // A prefix such as `__rust_` is too short: threads begin in `__rust_begin_short_backtrace`.
        const SHIMS: [&str; 6] = [
            "__rust_alloc",
            "__rust_realloc",
            "__rdl_alloc",
            "__rdl_realloc",
            "__rg_alloc",
            "__rg_realloc",
        ];
        let function = self.function.strip_prefix("__rustc::").unwrap_or(self.function);
        SHIMS.iter().any(|prefix| function.starts_with(prefix))
            || self.function.contains("GlobalAlloc>::")
    }

    /// Returns the crate that the code is from, as `serde_json`, if its file or path shows it.
    pub(crate) fn crate_name(&self) -> Option<Cow<'a, str>> {
        if let Some(krate) = self.file.and_then(registry_crate) {
            return Some(krate);
        }
        if let Some(file) = self.file.filter(|file| is_rust_library(file)) {
            return file.split_once("library/")?.1.split('/').next().map(Cow::Borrowed);
        }
        self.crate_of_path()
    }

    /// Returns the crate at the start of the function's path. Functions that share their code name
    /// theirs.
    pub(super) fn crate_of_path(&self) -> Option<Cow<'a, str>> {
        let first = |function: &'a str| {
            let path = function.trim_start_matches(['<', '&', '_']);
            let (krate, _) = path.split_once("::")?;
            krate.chars().all(is_word).then_some(krate)
        };
        let crates: BTreeSet<&str> = self.functions().map(first).collect::<Option<_>>()?;
        match crates.len() {
            1 => crates.first().copied().map(Cow::Borrowed),
            _ => Some(Vec::from_iter(crates).join(" or ").into()),
        }
    }

    /// Returns the functions of the frame: several if they share their code, as `one of a::f,
    /// b::g and 2 more`.
    fn functions(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let list = self.function.strip_prefix("one of ").and_then(split_list);
        let all = list.unwrap_or_else(|| vec![self.function]);
        all.into_iter().map(|function| match function.rsplit_once(" and ") {
            Some((function, rest)) if rest.ends_with(" more") => function,
            _ => function,
        })
    }

    /// Returns whether the code is the program's own: neither a library nor a crate from a
    /// registry.
    pub(crate) fn is_own(&self) -> bool {
        let has_place = self
            .file
            .is_some_and(|file| registry_crate(file).is_none() && !file.starts_with("/usr/"));
        has_place && !self.is_library()
    }
}

/// Returns whether a function is an impl in Rust's own libraries, by its name alone: of one of
/// their traits for a type without a path, or of a trait that nobody else can implement
/// (`<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem`).
fn is_impl_of_library(function: &str) -> bool {
    const LIBRARIES: [&str; 3] = ["alloc::", "core::", "std::"];
    const PUBLIC: [&str; 3] =
        ["alloc::borrow::ToOwned", "alloc::string::ToString", "alloc::task::Wake"];
    let beginning = function.strip_prefix('<').and_then(|rest| rest.split_once(" as "));
    let Some((of, implemented)) = beginning else { return false };
    let is = |names: &[&str]| names.iter().any(|name| implemented.starts_with(name));
    is(&LIBRARIES) && (!of.contains("::") || implemented.starts_with("alloc::") && !is(&PUBLIC))
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::Parts;

    #[test]
    fn an_impl_of_the_standard_library_is_known_without_its_file() {
        let table = [
            ("<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem", true),
            ("<shop::Order as alloc::slice::<impl [T]>::to_vec_in::ConvertVec>::to_vec", true),
            ("<&str as core::str::pattern::Pattern>::is_contained_in", true),
            ("<shop::Order as core::clone::Clone>::clone", false),
            ("<shop::Order as alloc::string::ToString>::to_string", false),
            ("<u8 as shop::Priced>::price", false),
        ];
        for (function, expected) in table {
            assert_eq!(Parts::of_words(function).is_library(), expected, "{function}");
        }
    }
}
