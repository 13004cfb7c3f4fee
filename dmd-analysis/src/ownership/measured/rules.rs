//! The rules by which a derived reporter measures: which types, and which of their fields.

use std::collections::HashSet;
use std::fmt;

/// The types and fields that can be measured.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct MeasureRules {
    /// The paths of the program's own types that can be measured, without type arguments.
    pub types: HashSet<String>,
    /// The names of crates whose types memreport measures, with underscores.
    pub crates: HashSet<String>,
    /// The fields that are not measured: `shop::Stock.items`, `shop::Item::Sold.0`.
    pub ignored: HashSet<String>,
    /// True if types of all other crates are measured too, whatever they are.
    pub all_crates: bool,
}

/// The way in which a type is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ownership) enum Measured {
    /// Not at all.
    No,
    /// By a derive: field by field.
    Own,
    /// By an impl of memreport, which also follows raw pointers.
    Whole,
    /// By its parts: a type of the language or of the standard library.
    Parts,
}

impl MeasureRules {
    /// Returns how the type with this name is measured.
    pub(in crate::ownership) fn of(&self, name: &str) -> Measured {
        const STD: [&str; 4] = ["alloc", "core", "std", "hashbrown"];
        let Some((krate, _)) = without_arguments(name).split_once("::") else {
            return Measured::Parts;
        };
        // Tuples, arrays, references.
        if !krate.chars().all(|c| c.is_alphanumeric() || c == '_') {
            return if krate.starts_with('<') { Measured::No } else { Measured::Parts };
        }
        if STD.contains(&krate) {
            let is_list = name.starts_with("alloc::collections::linked_list::");
            return if is_list { Measured::Whole } else { Measured::Parts };
        }
        match self.own_type(name) {
            Some(_) => Measured::Own,
            None if self.all_crates || self.crates.contains(krate) => Measured::Whole,
            None => Measured::No,
        }
    }

    /// Returns the path of the program's own type that a name is of: the type, or one of its
    /// variants.
    pub(super) fn own_type(&self, name: &str) -> Option<&str> {
        let plain = plain(name);
        let own = self.types.get(&plain);
        let of_variant = || self.types.get(plain.rsplit_once("::")?.0);
        own.or_else(of_variant).map(|own| &**own)
    }
}

/// The name of a field with its type: `shop::Stock.items`.
pub(in crate::ownership) struct FieldName<'n> {
    of: String,
    field: &'n str,
}

impl<'n> FieldName<'n> {
    /// Names a field of a type, both as debug information has them.
    pub(in crate::ownership) fn new(of: &str, field: &'n str) -> Self {
        // Fields of tuples are `__0` there.
        let number = field.strip_prefix("__").filter(|number| number.parse::<u32>().is_ok());
        Self { of: plain(of), field: number.unwrap_or(field) }
    }
}

impl fmt::Display for FieldName<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.of, self.field)
    }
}

fn without_arguments(name: &str) -> &str {
    match name.find('<') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// Returns the path of a type without all type arguments.
pub(super) fn plain(name: &str) -> String {
    let (mut out, mut depth, mut before) = (String::with_capacity(name.len()), 0_u32, ' ');
    for c in name.chars() {
        match c {
            '<' => depth += 1,
            '>' if before == '-' => {}
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => out.push(c),
            _ => {}
        }
        before = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_measured_by_their_crate() {
        let mut rules = MeasureRules::default();
        rules.types.extend(["shop::Stock", "shop::Item"].map(str::to_owned));
        rules.crates.insert("smallvec".to_owned());
        for (name, expected) in [
            ("u8", Measured::Parts),
            ("(shop::Other, u8)", Measured::Parts),
            ("&[shop::Other]", Measured::Parts),
            ("alloc::vec::Vec<shop::Other>", Measured::Parts),
            ("alloc::collections::linked_list::LinkedList<u8>", Measured::Whole),
            ("shop::Stock<u8>", Measured::Own),
            ("shop::Item<u8>::Sold", Measured::Own),
            ("shop::Other", Measured::No),
            ("shop::main::{closure_env#0}", Measured::No),
            ("<shop::Stock as shop::Trait>::Of", Measured::No),
            ("smallvec::SmallVec<[u8; 4]>", Measured::Whole),
            ("rope::Rope", Measured::No),
        ] {
            assert_eq!(rules.of(name), expected, "{name}");
        }
    }

    #[test]
    fn fields_are_named_as_in_the_source() {
        for (of, field, expected) in [
            ("shop::Stock", "items", "shop::Stock.items"),
            ("shop::Item<u8, fn() -> u8>::Sold", "__0", "shop::Item::Sold.0"),
            ("shop::Stock", "__private", "shop::Stock.__private"),
        ] {
            assert_eq!(FieldName::new(of, field).to_string(), expected);
        }
    }
}
