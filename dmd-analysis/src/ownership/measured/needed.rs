//! The types that need an impl before a static can be measured.

use std::collections::BTreeSet;

use crate::symbols::Types;
use crate::symbols::types::{TypeId, TypeKind};

use super::rules::{FieldName, MeasureRules, Measured, plain};

/// The types that the type of a static leads to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NeededTypes {
    /// The paths of the program's own types.
    pub own: BTreeSet<String>,
    /// The fields of own types that lead to a type of a crate that memreport measures, with the
    /// name of that crate. The field is empty if no own type is between the static and that type.
    pub crates: BTreeSet<(String, String)>,
}

/// Returns the types that the types with these names lead to. A name without type arguments stands
/// for all types with its path.
#[must_use]
pub fn needed_types(types: &Types, rules: &MeasureRules, names: &[&str]) -> NeededTypes {
    let mut search = Search { types, rules, needed: NeededTypes::default(), seen: BTreeSet::new() };
    for name in names {
        if let Some(&id) = types.by_name.get(*name) {
            search.visit(id, "", 0);
        }
        let generic = format!("{name}<");
        for (id, of) in (0..).map(TypeId).zip(&types.list) {
            if of.name.starts_with(&generic) && plain(&of.name) == *name {
                search.visit(id, "", 0);
            }
        }
    }
    search.needed
}

struct Search<'t> {
    types: &'t Types,
    rules: &'t MeasureRules,
    needed: NeededTypes,
    seen: BTreeSet<(TypeId, String)>,
}

/// A type with more levels than this is damaged.
const DEEPEST: u32 = 200;

impl Search<'_> {
    /// Visits a type that a field leads to.
    fn visit(&mut self, id: TypeId, field: &str, depth: u32) {
        let of = self.types.get(id);
        let name = &*of.name;
        let is_empty = name.starts_with("core::marker::PhantomData<");
        if is_empty || depth > DEEPEST || !self.seen.insert((id, field.to_owned())) {
            return;
        }
        // A reference and a raw pointer own nothing.
        if name.starts_with(['&', '*']) {
            return;
        }
        match self.rules.of(name) {
            Measured::No => return,
            Measured::Own => {
                self.needed.own.extend(self.rules.own_type(name).map(str::to_owned));
            }
            kind @ (Measured::Whole | Measured::Parts) => {
                if kind == Measured::Whole
                    && let Some((krate, _)) = name.split_once("::")
                    && self.rules.crates.contains(krate)
                {
                    self.needed.crates.insert((field.to_owned(), krate.to_owned()));
                }
                // Allocators and hashers need no impl.
                for (argument, of) in &of.arguments {
                    if !matches!(&**argument, "A" | "S") {
                        self.visit(*of, field, depth + 1);
                    }
                }
                // What it consists of is its own affair; tuples and arrays have no arguments.
                if name.contains("::") && !name.starts_with(['(', '[']) {
                    return;
                }
            }
        }
        let is_own = self.rules.of(name) == Measured::Own;
        let parts: Vec<(String, TypeId)> = match &of.kind {
            TypeKind::Plain | TypeKind::Pointer(_) => Vec::new(),
            TypeKind::Array { element, .. } => vec![(String::new(), *element)],
            TypeKind::Struct(fields) | TypeKind::Union(fields) => {
                fields.iter().map(|part| (part.name.to_string(), part.of)).collect()
            }
            TypeKind::Enum { variants, .. } => {
                variants.iter().map(|variant| (String::new(), variant.field.of)).collect()
            }
        };
        for (part, of) in parts {
            let own = FieldName::new(name, &part).to_string();
            let place = if is_own && !part.is_empty() { &own } else { field };
            if !self.rules.ignored.contains(place) {
                self.visit(of, place, depth + 1);
            }
        }
    }
}
