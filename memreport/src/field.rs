//! The place in the source that a block is measured through: a field of a type, and the choices made for it.

use core::fmt;

/// A field of a type, as the derive knows it. A constant: made once, pointed at by every block measured through it.
#[derive(Clone, Copy)]
pub struct Field {
    /// A function, since the name of a generic type is not known in a constant.
    owner: fn() -> &'static str,
    name: &'static str,
    file: &'static str,
    line: u32,
    part: Option<(&'static str, &'static str)>,
    shared: Shared,
    ignored: Option<&'static str>,
}

/// Who counts a block that has several owners.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shared {
    /// Whoever comes first in this collection.
    #[default]
    First,
    /// This field, always. When another one counts it too, DMD calls it a double report.
    Here,
    /// Another owner; this field never counts it.
    Elsewhere,
}

impl Field {
    /// The field `name` of `T`, declared at that line of the file.
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

    /// What is measured through it is reported under this name, below the path of the whole value.
    #[must_use]
    pub const fn part(mut self, name: &'static str, description: &'static str) -> Self {
        self.part = Some((name, description));
        self
    }

    /// Shared blocks reached through it are counted by this rule.
    #[must_use]
    pub const fn shared(mut self, shared: Shared) -> Self {
        self.shared = shared;
        self
    }

    /// It is not measured, for this reason.
    #[must_use]
    pub const fn ignored(mut self, reason: &'static str) -> Self {
        self.ignored = Some(reason);
        self
    }

    /// The type that has the field, with its path and arguments.
    #[must_use]
    pub fn owner(&self) -> &'static str {
        (self.owner)()
    }

    /// Its name; a number in a tuple struct; `Variant.name` in an enum.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The source file that declares it.
    #[must_use]
    pub fn file(&self) -> &'static str {
        self.file
    }

    /// The line that declares it, from 1.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Why it is not measured, if it is not.
    #[must_use]
    pub fn reason(&self) -> Option<&'static str> {
        self.ignored
    }

    pub(crate) fn own_part(&self) -> Option<(&'static str, &'static str)> {
        self.part
    }

    /// Who counts shared blocks that are reached through it.
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

/// A field that the derive was told not to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkippedField {
    /// The name of the type that has it, without its path.
    pub owner: &'static str,
    /// The module of that type.
    pub module: &'static str,
    /// Its name.
    pub field: &'static str,
    /// Why it is skipped, as its author says.
    pub reason: &'static str,
    /// The source file.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
}

#[cfg(feature = "std")]
inventory::collect!(SkippedField);

/// Takes what generated code submits: without std, nothing is gathered from all over the program.
#[doc(hidden)]
#[macro_export]
macro_rules! submit_nowhere {
    ($($submitted:tt)*) => {};
}

/// All fields of the program that are not measured, sorted by place.
#[cfg(feature = "std")]
#[must_use]
pub fn skipped_fields() -> Vec<SkippedField> {
    let mut fields: Vec<_> = inventory::iter::<SkippedField>().copied().collect();
    fields.sort_by_key(|field| (field.file, field.line, field.field));
    fields
}
