//! Describes the field of a type through which a block is measured, and the derive's options for
//! it.

use core::fmt;

/// A field of a type, with its options, in the form that the derive emits.
///
/// Each is a constant. All claims of blocks measured through the field point to it.
#[derive(Clone, Copy)]
pub struct Field {
    /// A function, because a constant cannot hold the name of a generic type.
    owner: fn() -> &'static str,
    name: &'static str,
    file: &'static str,
    line: u32,
    part: Option<(&'static str, &'static str)>,
    shared: Shared,
    ignored: Option<&'static str>,
}

/// The rule that decides which owner counts a block that has several owners.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shared {
    /// The first owner that a collection visits counts the block.
    #[default]
    First,
    /// This field always counts the block. If another owner counts it too, DMD lists it as reported
    /// twice.
    Here,
    /// Another owner counts the block; this field never does.
    Elsewhere,
}

impl Field {
    /// Describes the field `name` of `T`, which is declared at `line` (from 1) of `file`.
    #[must_use]
    pub const fn of<T: ?Sized>(name: &'static str, file: &'static str, line: u32) -> Self {
        Field {
            owner: core::any::type_name::<T>,
            name,
            file,
            line,
            part: None,
            shared: Shared::First,
            ignored: None,
        }
    }

    /// Reports the bytes measured through this field under `name`, below the path of the whole
    /// value.
    #[must_use]
    pub const fn part(mut self, name: &'static str, description: &'static str) -> Self {
        self.part = Some((name, description));
        self
    }

    /// Sets the rule for shared blocks that are reached through this field.
    #[must_use]
    pub const fn shared(mut self, shared: Shared) -> Self {
        self.shared = shared;
        self
    }

    /// Excludes this field from measurement, for this reason.
    #[must_use]
    pub const fn ignored(mut self, reason: &'static str) -> Self {
        self.ignored = Some(reason);
        self
    }

    /// Returns the name of the type that has the field, with its path and its type arguments.
    #[must_use]
    pub fn owner(&self) -> &'static str {
        (self.owner)()
    }

    /// Returns the field's name: a number in a tuple struct, `Variant.name` in an enum.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the name of the type without its path and type arguments, and the field's name:
    /// `Page.title`.
    #[cfg(feature = "std")]
    pub(crate) fn short_name(&self) -> String {
        let owner = self.owner();
        let owner = owner.split_once('<').map_or(owner, |(owner, _)| owner);
        let owner = owner.rsplit("::").next().unwrap_or(owner);
        format!("{owner}.{}", self.name)
    }

    /// Returns the source file that declares the field.
    #[must_use]
    pub fn file(&self) -> &'static str {
        self.file
    }

    /// Returns the line of the declaration, from 1.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Returns the reason why the field is not measured, or `None` if it is.
    #[must_use]
    pub fn reason(&self) -> Option<&'static str> {
        self.ignored
    }

    pub(crate) fn own_part(&self) -> Option<(&'static str, &'static str)> {
        self.part
    }

    /// Returns the rule for shared blocks that are reached through this field.
    #[must_use]
    pub fn ownership(&self) -> Shared {
        self.shared
    }
}

impl fmt::Debug for Field {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{} ({}:{})", self.owner(), self.name, self.file, self.line)
    }
}

/// A field that the derive does not measure, because of `#[malloc_size_of(ignore = "…")]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkippedField {
    /// The name of the type that has the field, without its path.
    pub owner: &'static str,
    /// The module path of that type.
    pub module: &'static str,
    /// The field's name.
    pub field: &'static str,
    /// The reason that the attribute states.
    pub reason: &'static str,
    /// The source file.
    pub file: &'static str,
    /// The line in that file, from 1.
    pub line: u32,
}

#[cfg(feature = "std")]
inventory::collect!(SkippedField);

/// Discards the items that generated code submits: without `std` there is no link-time registry.
#[doc(hidden)]
#[macro_export]
macro_rules! submit_nowhere {
    ($($submitted:tt)*) => {};
}

/// Returns all fields of the program that the derive does not measure, sorted by file and line.
#[cfg(feature = "std")]
#[must_use]
pub fn skipped_fields() -> Vec<SkippedField> {
    let mut fields: Vec<_> = inventory::iter::<SkippedField>().copied().collect();
    fields.sort_by_key(|field| (field.file, field.line, field.field));
    fields
}
