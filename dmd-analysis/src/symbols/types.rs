//! The types of a program with their layouts, from debug information.

use rustc_hash::FxHashMap;

/// The number of a type in [`Types`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TypeId(pub(crate) u32);

/// A type: its full name, its size in bytes, and its parts.
#[derive(Debug, Clone)]
pub(crate) struct Type {
    pub(crate) name: Box<str>,
    pub(crate) size: u64,
    pub(crate) kind: TypeKind,
    /// The type arguments, by their names: `T`, `A`.
    pub(crate) arguments: Vec<(Box<str>, TypeId)>,
}

/// The parts of a type.
#[derive(Debug, Clone)]
pub(crate) enum TypeKind {
    /// A number, or a type without debug information.
    Plain,
    /// A thin pointer, and the type that it points at, if that is known.
    Pointer(Option<TypeId>),
    /// Equal elements, one after another.
    Array { element: TypeId, count: u64 },
    /// Fields that exist at the same time.
    Struct(Vec<Field>),
    /// Fields that share their place.
    Union(Vec<Field>),
    /// Variants of which one exists, and the number that tells which.
    Enum { tag: Option<Tag>, variants: Vec<Variant> },
}

/// A field of a type.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: Box<str>,
    pub(crate) offset: u64,
    pub(crate) of: TypeId,
}

/// The number in an enum that tells the variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl Tag {
    /// Returns the variant whose value the tag has, or else the one of all other values. `known`
    /// returns the value of a variant.
    pub(crate) fn choose<T>(
        self,
        value: u64,
        variants: &[T],
        known: impl Fn(&T) -> Option<u64>,
    ) -> Option<&T> {
        let mask = u64::MAX >> (64 - self.size.clamp(1, 8) * 8);
        let is_this = |variant: &&T| known(variant).is_some_and(|known| known & mask == value);
        let other = || variants.iter().find(|variant| known(variant).is_none());
        variants.iter().find(is_this).or_else(other)
    }
}

/// A variant of an enum.
#[derive(Debug, Clone)]
pub(crate) struct Variant {
    /// The value of the tag; `None` for the variant of all other values.
    pub(crate) value: Option<u64>,
    pub(crate) field: Field,
}

/// A static of the program.
#[derive(Debug, Clone)]
pub(crate) struct StaticVariable {
    /// The address in the module's file.
    pub(crate) address: u64,
    pub(crate) of: TypeId,
    /// The line that declares it, from 1; 0 if it is not known.
    pub(crate) line: u32,
}

/// A variable that a function on a stack had.
#[derive(Debug, Clone)]
pub(crate) struct Local {
    /// The number of the frame in the dump.
    pub(crate) frame: usize,
    /// The number of inlined calls around the variable within the frame's function.
    pub(crate) depth: usize,
    pub(crate) name: String,
    pub(crate) of: TypeId,
    /// Where it was; parts without a place are left out.
    pub(crate) parts: Vec<LocalPart>,
}

/// A part of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LocalPart {
    pub(crate) place: LocalPlace,
    /// Its bytes; `None` for all that the type has.
    pub(crate) size: Option<u64>,
    /// Its offset in the variable, in bytes.
    pub(crate) offset: u64,
}

/// The place of a part of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocalPlace {
    Memory(u64),
    /// The register with this number of DWARF, in which the thread still had it.
    Register(u16),
}

/// A thread-local variable of the program.
#[derive(Debug, Clone)]
pub(crate) struct ThreadLocal {
    pub(crate) name: String,
    pub(crate) of: TypeId,
    /// Its distance below the thread pointer, in bytes.
    pub(crate) below: u64,
}

/// The types of a program, its statics, and its tables of virtual functions.
#[derive(Debug, Default)]
pub struct Types {
    pub(crate) list: Vec<Type>,
    pub(crate) by_name: FxHashMap<Box<str>, TypeId>,
    /// Sorted by address.
    pub(crate) statics: Vec<StaticVariable>,
    /// The variables of the frames that a scan has.
    pub(crate) locals: Vec<Local>,
    pub(crate) thread_locals: Vec<ThreadLocal>,
    /// By address in the module's file: the type whose virtual functions are there.
    pub(crate) virtual_tables: FxHashMap<u64, TypeId>,
    /// The path of the module.
    pub(crate) module: String,
}

impl Types {
    /// Returns the number of types.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether the program has no debug information with types.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns whether a crate, by its name in paths, has a type whose path ends with this name. An
    /// empty name is of any type.
    #[must_use]
    pub fn has_type(&self, krate: &str, name: &str) -> bool {
        let is_it = |of: &Type| {
            let rest = of.name.strip_prefix(krate)?.strip_prefix("::")?;
            let path = rest.split('<').next()?;
            Some(name.is_empty() || path == name || path.ends_with(&format!("::{name}")))
        };
        self.list.iter().any(|of| is_it(of) == Some(true))
    }

    pub(crate) fn get(&self, id: TypeId) -> &Type {
        &self.list[id.0 as usize]
    }

    pub(crate) fn name(&self, id: TypeId) -> &str {
        &self.get(id).name
    }

    /// Returns the static that contains an address of the module's file.
    pub(crate) fn static_at(&self, address: u64) -> Option<&StaticVariable> {
        let after = self.statics.partition_point(|known| known.address <= address);
        let known = self.statics.get(after.checked_sub(1)?)?;
        (address - known.address < self.get(known.of).size).then_some(known)
    }
}

impl Type {
    /// Returns the type argument with this name.
    pub(crate) fn argument(&self, name: &str) -> Option<TypeId> {
        self.arguments.iter().find(|(known, _)| **known == *name).map(|(_, of)| *of)
    }

    /// Returns the fields of a struct or a union, none of other types.
    pub(crate) fn fields(&self) -> &[Field] {
        match &self.kind {
            TypeKind::Struct(fields) | TypeKind::Union(fields) => fields,
            _ => &[],
        }
    }

    /// Returns the field with this name.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields().iter().find(|field| *field.name == *name)
    }
}
