//! Defines how a tracker attributes blocks that no reporter claims: by their origin, or by pointers
//! from a field.

use alloc::format;
use alloc::string::String;

use crate::field::Field;

/// Usable bytes of blocks that no reporter claims, and that the tracker attributes to a report.
#[derive(Clone, Copy, Debug)]
pub struct Attributed<'f> {
    /// The path of the report.
    pub path: &'f str,
    /// The usable bytes.
    pub bytes: usize,
    /// The reason for the attribution.
    pub by: AttributedBy,
}

/// The reason why a tracker attributes a block that no reporter claims.
#[derive(Clone, Copy, Debug)]
pub enum AttributedBy {
    /// A function of C has requested it.
    CHeap,
    /// The crate that has requested it, or the scope in which it was requested, has a reporter.
    Origin(&'static OriginReporter),
    /// Pointers lead to it from a field that is measured in this way.
    Field(&'static Field),
}

/// Returns the path of the blocks that the tracker finds for this field of a reporter.
#[must_use]
pub fn inferred_path(reporter: &str, field: &Field) -> String {
    format!("{reporter}/inferred/{}", field.short_name().replace('/', "\\"))
}

/// A reporter of the blocks of some crates or of a scope. Made by
/// [`reporter_of_crate!`](crate::reporter_of_crate) and
/// [`reporter_of_scope!`](crate::reporter_of_scope).
#[derive(Clone, Copy, Debug)]
pub struct OriginReporter {
    path: &'static str,
    description: &'static str,
    origin: Origin,
}

/// The origin of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The innermost function that requested the block, apart from those of Rust's libraries, is in
    /// one of these crates.
    Crates(&'static [&'static str]),
    /// The block was allocated in a scope with this name, or in a scope within it.
    Scope(&'static str),
}

impl OriginReporter {
    /// Creates the reporter of some crates.
    ///
    /// # Panics
    ///
    /// If the path is not below `explicit/`, or a name is not that of a crate outside of Rust's
    /// libraries. Used in a constant, this is an error of the compiler.
    #[doc(hidden)]
    #[must_use]
    pub const fn of_crates(
        path: &'static str,
        crates: &'static [&'static str],
        description: &'static str,
    ) -> Self {
        require_explicit(path);
        let mut index = 0;
        while index < crates.len() {
            require_crate(crates[index]);
            index += 1;
        }
        OriginReporter { path, description, origin: Origin::Crates(crates) }
    }

    /// Creates the reporter of a scope.
    ///
    /// # Panics
    ///
    /// If the path is not below `explicit/`, or the name is empty.
    #[doc(hidden)]
    #[must_use]
    pub const fn of_scope(
        path: &'static str,
        scope: &'static str,
        description: &'static str,
    ) -> Self {
        require_explicit(path);
        assert!(!scope.is_empty(), "a scope has a name");
        OriginReporter { path, description, origin: Origin::Scope(scope) }
    }

    /// Returns the path of the report.
    #[must_use]
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// Returns the description of the report.
    #[must_use]
    pub fn description(&self) -> &'static str {
        self.description
    }

    /// Returns the origin of the blocks that are reported.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.origin
    }
}

/// Heap memory is reported below `explicit/`.
const fn require_explicit(path: &str) {
    assert!(begins_with(path.as_bytes(), b"explicit/"), "the path must begin with `explicit/`");
}

const fn require_crate(name: &str) {
    let bytes = name.as_bytes();
    assert!(!bytes.is_empty(), "a crate has a name");
    let mut index = 0;
    while index < bytes.len() {
        let byte = bytes[index];
        let is_in_names = byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        assert!(is_in_names, "not a name of a crate: letters, digits, `_` and `-`");
        index += 1;
    }
    let mut index = 0;
    while index < LIBRARIES.len() {
        let library = LIBRARIES[index].as_bytes();
        let is_it = begins_with(bytes, library) && bytes.len() == library.len();
        assert!(
            !is_it,
            "Rust's libraries allocate for their callers: name the crate that calls them"
        );
        index += 1;
    }
}

const fn begins_with(text: &[u8], beginning: &[u8]) -> bool {
    if text.len() < beginning.len() {
        return false;
    }
    let mut index = 0;
    while index < beginning.len() {
        if text[index] != beginning[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// The crates of Rust's libraries that allocate for their callers.
pub const LIBRARIES: [&str; 4] = ["alloc", "core", "std", "hashbrown"];
