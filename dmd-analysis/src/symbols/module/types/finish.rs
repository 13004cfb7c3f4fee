//! Resolves the references of types that were read.

use rustc_hash::FxHashMap;

use super::locals::RawLocal;
use super::{Place, Raw, RawField, RawKind, RawThreadLocal, Reader, id};
use crate::symbols::types::{
    Field, Local, StaticVariable, Tag, ThreadLocal, Type, TypeId, TypeKind, Types, Variant,
};

/// Returns the types of a reader. References that lead nowhere become a plain type. The module has
/// this many bytes of thread-local variables, which end at the thread pointer.
pub(super) fn finish(reader: Reader, thread_local_bytes: u64) -> Types {
    let Reader { raw, places, statics, locals, thread_locals, .. } = reader;
    let unknown = id(u32::try_from(raw.len()).unwrap_or(u32::MAX));
    let places: FxHashMap<Place, u32> = places.into_iter().collect();
    let resolver = Resolver { places, unknown };
    let sizes: Vec<u64> = raw.iter().map(|of| of.size).collect();
    let mut tables: FxHashMap<TypeId, TypeId> = FxHashMap::default();
    for (number, of) in (0..).map(id).zip(&raw) {
        tables.extend(resolver.optional(of.containing).map(|containing| (number, containing)));
    }
    let mut list: Vec<Type> = raw.into_iter().map(|raw| resolver.resolve(raw, &sizes)).collect();
    list.push(Type { name: "".into(), size: 0, kind: TypeKind::Plain, arguments: Vec::new() });
    size_arrays(&mut list);
    let mut types = Types { list, ..Types::default() };
    for of in statics {
        let type_of = resolver.of(Some(of.of));
        match tables.get(&type_of) {
            Some(&containing) => {
                types.virtual_tables.insert(of.address, containing);
            }
            None => {
                let (address, line) = (of.address, of.line);
                types.statics.push(StaticVariable { address, of: type_of, line });
            }
        }
    }
    types.statics.sort_by_key(|known| known.address);
    types.statics.dedup_by_key(|known| known.address);
    let local = |RawLocal { frame, depth, name, of, parts }: RawLocal| Local {
        of: resolver.of(Some(of)),
        frame,
        depth,
        name,
        parts,
    };
    let thread_local = |RawThreadLocal { name, offset, of }: RawThreadLocal| {
        let below = thread_local_bytes.checked_sub(offset)?;
        Some(ThreadLocal { name, of: resolver.of(Some(of)), below })
    };
    types.thread_locals = thread_locals.into_iter().filter_map(thread_local).collect();
    types.locals = locals.into_iter().map(local).collect();
    for (number, of) in (0..).map(id).zip(&types.list) {
        types.by_name.entry(of.name.clone()).or_insert(number);
    }
    types
}

/// Sets the sizes and names of arrays, innermost first.
fn size_arrays(list: &mut [Type]) {
    // An array of arrays needs as many passes as it has dimensions.
    for _ in 0..4 {
        for at in 0..list.len() {
            if let TypeKind::Array { element, count } = list[at].kind
                && list[at].size == 0
            {
                let of = &list[element.0 as usize];
                let (size, name) = (of.size, format!("[{}; {count}]", of.name));
                list[at].size = size.saturating_mul(count);
                list[at].name = name.into();
            }
        }
    }
}

struct Resolver {
    places: FxHashMap<Place, u32>,
    /// The type of what leads nowhere.
    unknown: TypeId,
}

impl Resolver {
    fn optional(&self, place: Option<Place>) -> Option<TypeId> {
        self.places.get(&place?).copied().map(id)
    }

    fn of(&self, place: Option<Place>) -> TypeId {
        self.optional(place).unwrap_or(self.unknown)
    }

    fn field(&self, raw: RawField) -> Field {
        Field { name: raw.name, offset: raw.offset, of: self.of(raw.of) }
    }

    fn resolve(&self, raw: Raw, sizes: &[u64]) -> Type {
        let fields = |raw: Vec<RawField>| raw.into_iter().map(|raw| self.field(raw)).collect();
        let kind = match raw.kind {
            RawKind::Plain => TypeKind::Plain,
            RawKind::Pointer => TypeKind::Pointer(self.optional(raw.of)),
            RawKind::Array => TypeKind::Array { element: self.of(raw.of), count: raw.count },
            RawKind::Union => TypeKind::Union(fields(raw.fields)),
            RawKind::Struct if raw.variants.is_empty() => TypeKind::Struct(fields(raw.fields)),
            RawKind::Struct => {
                let variants = raw.variants.into_iter();
                let variant = |(value, raw)| Variant { value, field: self.field(raw) };
                let tag = raw.tag.map(|(offset, of)| Tag {
                    offset,
                    size: sizes.get(self.of(of).0 as usize).copied().unwrap_or(0),
                });
                TypeKind::Enum { tag, variants: variants.map(variant).collect() }
            }
        };
        let arguments = raw.arguments.into_iter();
        let arguments = arguments.map(|(name, of)| (name, self.of(Some(of)))).collect();
        Type { name: raw.name.into(), size: raw.size, kind, arguments }
    }
}
