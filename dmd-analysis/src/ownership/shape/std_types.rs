//! The standard library's collections and pointers, recognised by their names and their fields.

use crate::symbols::types::{Type, TypeId, TypeKind, Types};

use super::{Strength, Target};

/// A pointer of a type that is recognised: its offset from the start of the value.
pub(super) struct Recognised {
    pub(super) offset: u64,
    pub(super) strength: Strength,
    pub(super) target: Target,
}

/// Recognises a collection, a box, a counted pointer or a wide pointer.
pub(super) fn recognise(types: &Types, id: TypeId) -> Option<Recognised> {
    let of = types.get(id);
    let name = &*of.name;
    let begins = |prefix: &str| name.starts_with(prefix);
    if begins("alloc::vec::Vec<") || begins("alloc::collections::vec_deque::VecDeque<") {
        return vector(types, id);
    }
    if begins("alloc::vec::into_iter::IntoIter<") {
        return iterated(types, id);
    }
    if begins("alloc::raw_vec::RawVec<") {
        let offset = pointer_in(types, id, 0)?;
        let target =
            Target::Elements { of: of.argument("T")?, header: 0, length: None, head: None };
        return Some(Recognised { offset, strength: Strength::Owner, target });
    }
    if begins("hashbrown::raw::RawTable<") {
        let table = of.field("table")?;
        let control = types.get(table.of).field("ctrl")?;
        let target = Target::Table { of: of.argument("T")? };
        let offset = table.offset.saturating_add(control.offset);
        return Some(Recognised { offset, strength: Strength::Owner, target });
    }
    for (prefix, strength) in [
        ("alloc::rc::Rc<", Strength::Shared),
        ("alloc::sync::Arc<", Strength::Shared),
        ("alloc::rc::Weak<", Strength::Weak),
        ("alloc::sync::Weak<", Strength::Weak),
    ] {
        if begins(prefix) {
            return counted(types, of, strength);
        }
    }
    let strength = match name.as_bytes().first()? {
        _ if begins("alloc::boxed::Box<") => Strength::Owner,
        b'&' => Strength::Borrowed,
        b'*' => Strength::Raw,
        _ => return None,
    };
    let target = match &of.kind {
        TypeKind::Pointer(to) => value(types, *to),
        _ => wide(types, of, 0)?,
    };
    Some(Recognised { offset: 0, strength, target })
}

/// Returns the layout behind a thin pointer.
pub(super) fn value(types: &Types, to: Option<TypeId>) -> Target {
    let Some(to) = to else { return Target::Unknown };
    let of = types.get(to);
    // Bytes and `()` stand for memory of any type.
    if of.size == 0 || matches!(&*of.name, "u8" | "i8" | "core::ffi::c_void") {
        return Target::Unknown;
    }
    if of.name.starts_with("alloc::collections::btree::node::LeafNode<") {
        let inner = of.name.replacen("LeafNode<", "InternalNode<", 1);
        let inner = types.by_name.get(inner.as_str()).copied();
        return Target::Node { leaf: to, inner };
    }
    Target::Value(to)
}

fn vector(types: &Types, id: TypeId) -> Option<Recognised> {
    let of = types.get(id);
    let buffer = of.field("buf")?;
    let offset = buffer.offset.saturating_add(pointer_in(types, buffer.of, 0)?);
    let length = of.field("len").map(|field| field.offset);
    let head = of.field("head").map(|field| field.offset);
    let target = Target::Elements { of: of.argument("T")?, header: 0, length, head };
    Some(Recognised { offset, strength: Strength::Owner, target })
}

fn iterated(types: &Types, id: TypeId) -> Option<Recognised> {
    let of = types.get(id);
    let pointer = |name| {
        let field = of.field(name)?;
        Some(field.offset.saturating_add(pointer_in(types, field.of, 0)?))
    };
    let (buffer, next, end) = (pointer("buf")?, pointer("ptr")?, pointer("end")?);
    let target = Target::Iterated { of: of.argument("T")?, buffer, next, end };
    Some(Recognised { offset: buffer, strength: Strength::Owner, target })
}

fn counted(types: &Types, of: &Type, strength: Strength) -> Option<Recognised> {
    let field = of.field("ptr")?;
    let mut pointer = types.get(field.of);
    while let Some(inner) = pointer.field("pointer")
        && pointer.field("vtable").is_none()
    {
        pointer = types.get(inner.of);
    }
    let target = match &pointer.kind {
        TypeKind::Pointer(to) => value(types, *to),
        _ => match wide(types, pointer, 16)? {
            // The pointer leads to the counts; the elements are the type's argument.
            Target::Elements { header, length, head, .. } => {
                Target::Elements { of: of.argument("T")?, header, length, head }
            }
            other => other,
        },
    };
    Some(Recognised { offset: field.offset, strength, target })
}

/// Returns the layout behind a pointer with a length or a table of virtual functions.
fn wide(types: &Types, of: &Type, header: u64) -> Option<Target> {
    if let (Some(data), Some(length)) = (of.field("data_ptr"), of.field("length")) {
        let TypeKind::Pointer(Some(element)) = types.get(data.of).kind else { return None };
        let length = Some(length.offset);
        return Some(Target::Elements { of: element, header, length, head: None });
    }
    let table = of.field("vtable")?.offset;
    Some(Target::Dynamic { table, header })
}

/// Returns the offset of the first pointer in a type.
fn pointer_in(types: &Types, id: TypeId, depth: u32) -> Option<u64> {
    let of = types.get(id);
    if matches!(of.kind, TypeKind::Pointer(_)) {
        return Some(0);
    }
    let inner = of.fields().iter().filter(|_| depth < 16);
    inner
        .filter_map(|field| {
            Some(field.offset.saturating_add(pointer_in(types, field.of, depth + 1)?))
        })
        .next()
}
