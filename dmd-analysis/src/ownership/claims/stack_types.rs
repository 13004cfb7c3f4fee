//! The layouts of blocks by their allocation stacks.

use rustc_hash::FxHashMap;

use crate::analysis::frames::{BlockType, Sites};
use crate::ownership::layout::Layout;
use crate::ownership::shape::short;
use crate::read::Block;
use crate::symbols::types::{TypeId, Types};

/// The layouts of blocks, by site.
#[derive(Debug)]
pub(in crate::ownership) struct StackTypes<'a> {
    sites: &'a Sites,
    known: Vec<Option<Pattern>>,
}

/// A layout whose offsets depend on the size of the block.
#[derive(Debug, Clone, Copy)]
enum Pattern {
    Value(TypeId),
    Elements(TypeId),
    Table { of: TypeId, size: u64 },
    Node { leaf: TypeId, inner: Option<(TypeId, u64)> },
}

impl<'a> StackTypes<'a> {
    pub(in crate::ownership) fn new(sites: &'a Sites, types: &Types) -> Self {
        let mut by_short: FxHashMap<String, TypeId> = FxHashMap::default();
        if sites.iter().any(|site| matches!(site.block_type, BlockType::Known(_))) {
            for (number, of) in (0..).map(TypeId).zip(&types.list) {
                if of.size > 0 && !of.name.is_empty() {
                    by_short.entry(short(&of.name)).or_insert(number);
                }
            }
        }
        let known = sites.iter().map(|site| match &site.block_type {
            BlockType::Known(name) => pattern(name, types, &by_short),
            _ => None,
        });
        Self { known: known.collect(), sites }
    }

    /// Returns the layout of a block.
    pub(in crate::ownership) fn layout(&self, block: &Block<'_>) -> Option<Layout> {
        Some(match self.known[self.sites.of(block.kind.alloc)]? {
            Pattern::Value(of) => Layout::Value { of, at: 0 },
            Pattern::Elements(of) => Layout::Elements { of, at: 0, head: 0, length: None },
            Pattern::Node { leaf, inner } => {
                let inner = inner.filter(|(_, size)| block.req >= *size);
                Layout::Value { of: inner.map_or(leaf, |(inner, _)| inner), at: 0 }
            }
            Pattern::Table { of, size } => {
                let control = |buckets: u64| Some(buckets.checked_mul(size)?.next_multiple_of(16));
                let buckets = (0..48).map(|log| 1_u64 << log).find(|&buckets| {
                    control(buckets).is_some_and(|control| control + buckets + 16 == block.req)
                })?;
                Layout::Table { of, control: control(buckets)?, buckets }
            }
        })
    }
}

/// Returns the type of a buffer's elements by the name of the block's type, also of a name that is
/// one example of several.
pub(super) fn elements(of: &BlockType) -> Option<&str> {
    let BlockType::Known(name) = of else { return None };
    let name = name.strip_prefix("one of ").unwrap_or(name);
    let name = name.strip_suffix(" and types with equal code").unwrap_or(name);
    name.strip_prefix('[')?.strip_suffix(']')
}

/// Returns whether a block has bytes or a text, and so no pointers, by the name of its type.
pub(super) fn is_text(of: &BlockType) -> bool {
    const TEXTS: [&str; 6] = ["[u8]", "String", "Box<str>", "Arc<str>", "Rc<str>", "PathBuf"];
    matches!(of, BlockType::Known(name) if TEXTS.contains(&&**name))
}

fn pattern(name: &str, types: &Types, known: &FxHashMap<String, TypeId>) -> Option<Pattern> {
    let name = short(name);
    let inside = |prefix: &str, suffix: &str| name.strip_prefix(prefix)?.strip_suffix(suffix);
    let find = |name: &str| known.get(name).copied();
    if let Some(of) = inside("Box<", ">") {
        return find(of).map(Pattern::Value);
    }
    if let Some(of) = inside("[", "]") {
        return find(of).map(Pattern::Elements);
    }
    if name == "String" {
        return find("u8").map(Pattern::Elements);
    }
    for (pointer, inner) in [("Rc<", "RcInner"), ("Arc<", "ArcInner")] {
        if let Some(of) = inside(pointer, ">") {
            return find(&format!("{inner}<{of}>")).map(Pattern::Value);
        }
    }
    if let Some(of) = name.strip_prefix("HashMap table of ") {
        let of = find(of)?;
        return Some(Pattern::Table { of, size: types.get(of).size });
    }
    let entries = inside("BTreeMap<", "> node")?;
    let inner = find(&format!("InternalNode<{entries}>"));
    let inner = inner.map(|inner| (inner, types.get(inner).size));
    Some(Pattern::Node { leaf: find(&format!("LeafNode<{entries}>"))?, inner })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_has_the_type_of_its_elements_also_as_one_example() {
        let known = |name: &str| BlockType::Known(name.to_owned());
        for (of, expected) in [
            (known("[shop::Order]"), Some("shop::Order")),
            (known("one of [u8] and types with equal code"), Some("u8")),
            (known("shop::Order"), None),
            (known("Box<[u8]>"), None),
            (BlockType::Unknown, None),
        ] {
            assert_eq!(elements(&of), expected, "{of:?}");
        }
    }

    #[test]
    fn bytes_are_known_by_their_whole_name() {
        for (name, expected) in [
            ("[u8]", true),
            ("String", true),
            ("one of [u8] and types with equal code", false),
            ("[&u8]", false),
            ("shop::String", false),
        ] {
            assert_eq!(is_text(&BlockType::Known(name.to_owned())), expected, "{name}");
        }
    }
}
