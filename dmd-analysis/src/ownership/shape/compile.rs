//! Finds the pointers of a type, through its fields.

use crate::symbols::types::{Field, TypeId, TypeKind};

use super::super::measured::{FieldName, Measured};
use super::std_types::{self, Recognised};
use super::{Case, Count, LabelId, Part, Role, Shapes, Slot, Strength, Target, names, short};

/// The way from a value to a part of it.
#[derive(Clone)]
struct Way {
    offset: u64,
    /// The names of the fields so far, without those of libraries.
    path: String,
    /// The type of the last field that is in the path, or of the value.
    declared: TypeId,
    /// The strength of raw pointers there.
    raw: Strength,
    is_excluded: bool,
    /// With rules of measuring: the fields of the program's own types so far, a line each.
    through: String,
    depth: u32,
}

/// A type with more levels than this is damaged.
const DEEPEST: u32 = 64;

/// The most fields of a type, at all levels, that are looked at.
const MOST_FIELDS: u32 = 100_000;

/// The path to the nodes below a node of a map.
const NODES: &str = "(nodes)";

/// Returns the pointers of a type.
pub(super) fn compile(shapes: &mut Shapes<'_>, id: TypeId, role: Role) -> Vec<Part> {
    shapes.steps = MOST_FIELDS;
    let way = Way {
        offset: 0,
        path: String::new(),
        declared: id,
        raw: Strength::Raw,
        is_excluded: false,
        through: String::new(),
        depth: 0,
    };
    let mut parts = Vec::new();
    let of = shapes.types.get(id);
    match of.fields() {
        [key, value] if role == Role::Entry && of.name.starts_with('(') => {
            let is_set = shapes.types.get(value.of).size == 0;
            for (field, path) in [(key, "key"), (value, "value")] {
                let path = if is_set { String::new() } else { path.to_owned() };
                let way = Way { offset: field.offset, path, declared: field.of, ..way.clone() };
                add(shapes, field.of, &way, &mut parts);
            }
        }
        _ => add(shapes, id, &way, &mut parts),
    }
    parts
}

fn add(shapes: &mut Shapes<'_>, id: TypeId, way: &Way, parts: &mut Vec<Part>) {
    let types = shapes.types;
    let of = types.get(id);
    shapes.steps = shapes.steps.saturating_sub(1);
    if shapes.steps == 0
        || way.depth > DEEPEST
        || of.size == 0
        || of.name.starts_with("core::marker::PhantomData<")
    {
        return;
    }
    let mut way = Way { depth: way.depth + 1, ..way.clone() };
    if !enter(shapes, &of.name, &mut way) {
        return;
    }
    if let Some(Recognised { offset, strength, target }) = std_types::recognise(types, id) {
        // A value of any type cannot be measured by a derive.
        if shapes.rules.is_some() && matches!(target, Target::Dynamic { .. }) {
            return;
        }
        let strength = if strength == Strength::Raw { way.raw } else { strength };
        parts.push(pointer(shapes, &way, offset, strength, target));
        return;
    }
    if let Some(node) = node(shapes, id, &way) {
        parts.extend(node);
        return;
    }
    match &of.kind {
        TypeKind::Plain => {}
        TypeKind::Pointer(to) => {
            let target = std_types::value(types, *to);
            parts.push(pointer(shapes, &way, 0, way.raw, target));
        }
        TypeKind::Array { element, count } => {
            let inner = Way { offset: 0, ..way.clone() };
            parts.extend(repeat(shapes, *element, &inner, way.offset, Count::Fixed(*count)));
        }
        TypeKind::Struct(fields) | TypeKind::Union(fields) => {
            for field in fields {
                add_field(shapes, id, field, &way, parts);
            }
        }
        TypeKind::Enum { tag, variants } => {
            let mut cases = Vec::new();
            for variant in variants {
                let mut parts = Vec::new();
                add_field(shapes, id, &variant.field, &way, &mut parts);
                cases.push(Case { value: variant.value, parts });
            }
            if cases.iter().any(|case| !case.parts.is_empty()) {
                let tag = tag.map(|mut tag| {
                    tag.offset = tag.offset.saturating_add(way.offset);
                    tag
                });
                parts.push(Part::Variants { tag, cases });
            }
        }
    }
}

/// Notes that the way enters a type. Returns false if nothing in it is measured.
fn enter(shapes: &Shapes<'_>, name: &str, way: &mut Way) -> bool {
    way.is_excluded |= shapes.is_excluded(name);
    let measured = shapes.rules.map(|rules| rules.of(name));
    let owners = ["core::ptr::unique::Unique<", "alloc::collections::btree::map::BTreeMap<"];
    if measured == Some(Measured::Whole) || owners.iter().any(|owner| name.starts_with(owner)) {
        way.raw = Strength::Owner;
    }
    measured != Some(Measured::No)
}

fn add_field(
    shapes: &mut Shapes<'_>,
    around: TypeId,
    field: &Field,
    way: &Way,
    parts: &mut Vec<Part>,
) {
    let mut way = Way { offset: way.offset.saturating_add(field.offset), ..way.clone() };
    let around = shapes.types.name(around);
    if let Some(rules) = shapes.rules
        && rules.of(around) == Measured::Own
    {
        let place = FieldName::new(around, &field.name).to_string();
        if rules.ignored.contains(&place) {
            return;
        }
        way.through.push_str(&place);
        way.through.push('\n');
    }
    if !names::is_library(around) {
        let name = field.name.strip_prefix("__").unwrap_or(&field.name);
        if !way.path.is_empty() {
            way.path.push('.');
        }
        way.path.push_str(name);
        way.declared = field.of;
    }
    add(shapes, field.of, &way, parts);
}

fn pointer(
    shapes: &mut Shapes<'_>,
    way: &Way,
    offset: u64,
    strength: Strength,
    target: Target,
) -> Part {
    let label = label(shapes, way);
    let strength = if way.is_excluded { Strength::Excluded } else { strength };
    let at = |offset: u64| way.offset.saturating_add(offset);
    let target = match target {
        Target::Elements { of, header, length, head } => {
            Target::Elements { of, header, length: length.map(at), head: head.map(at) }
        }
        Target::Iterated { of, buffer, next, end } => {
            Target::Iterated { of, buffer: at(buffer), next: at(next), end: at(end) }
        }
        Target::Dynamic { table, header } => Target::Dynamic { table: at(table), header },
        other => other,
    };
    Part::Pointer(Slot { offset: at(offset), strength, target, label })
}

fn label(shapes: &mut Shapes<'_>, way: &Way) -> LabelId {
    let declared = short(shapes.types.name(way.declared));
    let declared = names::shared_value(&declared).unwrap_or(&declared);
    if way.path == NODES {
        return LabelId::NODE;
    }
    if shapes.rules.is_some() {
        return shapes.label(&way.through);
    }
    match &*way.path {
        "" => shapes.label(declared),
        path => shapes.label(&format!("{path}: {declared}")),
    }
}

/// Returns the parts of elements, if they have any. The way begins at the element.
fn repeat(
    shapes: &mut Shapes<'_>,
    element: TypeId,
    inner: &Way,
    offset: u64,
    count: Count,
) -> Option<Part> {
    let mut parts = Vec::new();
    add(shapes, element, inner, &mut parts);
    let stride = shapes.types.get(element).size;
    (!parts.is_empty()).then_some(Part::Repeat { offset, stride, count, parts })
}

/// Returns the parts of a node of a `BTreeMap`: keys, values, and the nodes below it.
fn node(shapes: &mut Shapes<'_>, id: TypeId, way: &Way) -> Option<Vec<Part>> {
    let types = shapes.types;
    let of = types.get(id);
    let name = of.name.strip_prefix("alloc::collections::btree::node::")?;
    let mut parts = Vec::new();
    if name.starts_with("InternalNode<") {
        let (data, edges) = (of.field("data")?, of.field("edges")?);
        let leaf = Way { offset: way.offset.saturating_add(data.offset), ..way.clone() };
        parts.extend(node(shapes, data.of, &leaf)?);
        let length = types.get(data.of).field("len")?.offset.saturating_add(leaf.offset);
        let TypeKind::Array { element, .. } = types.get(edges.of).kind else { return None };
        let inner = Way { offset: 0, raw: Strength::Owner, path: NODES.into(), ..way.clone() };
        let count = Count::At { offset: length, plus: 1 };
        parts.extend(repeat(
            shapes,
            element,
            &inner,
            way.offset.saturating_add(edges.offset),
            count,
        ));
        return Some(parts);
    }
    if !name.starts_with("LeafNode<") {
        return None;
    }
    let length = way.offset.saturating_add(of.field("len")?.offset);
    for (field, argument, words) in [("keys", "K", "key"), ("vals", "V", "value")] {
        let (field, element) = (of.field(field)?, of.argument(argument)?);
        let path = words.to_owned();
        let inner = Way { offset: 0, path, declared: element, ..way.clone() };
        let count = Count::At { offset: length, plus: 0 };
        parts.extend(repeat(
            shapes,
            element,
            &inner,
            way.offset.saturating_add(field.offset),
            count,
        ));
    }
    if let Some(parent) = of.field("parent") {
        let path = "(parent)".to_owned();
        let offset = way.offset.saturating_add(parent.offset);
        let inner = Way { offset, path, declared: parent.of, raw: Strength::Weak, ..way.clone() };
        add(shapes, parent.of, &inner, &mut parts);
    }
    Some(parts)
}
