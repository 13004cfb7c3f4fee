//! The fields at offsets of values, from the program's debug information.

use super::freed::Freed;

/// A word in a block: the start of the block, and the offset of the word.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "explain"), expect(dead_code, reason = "only types have fields"))]
pub(super) struct InBlock {
    pub(super) start: usize,
    pub(super) at: usize,
}

/// No names: without the feature `explain`, debug information is not read.
#[cfg(not(feature = "explain"))]
#[derive(Debug, Default)]
pub(super) struct NoNames;

#[cfg(not(feature = "explain"))]
pub(super) use NoNames as Names;

#[cfg(not(feature = "explain"))]
#[expect(clippy::unused_self, reason = "as with the feature")]
impl NoNames {
    pub(super) fn read(_: Option<&str>, _: impl Iterator<Item = InBlock>, _: &[Freed]) -> Self {
        NoNames
    }

    pub(super) fn of_value(&self, _: &str, _: usize) -> Option<String> {
        None
    }

    pub(super) fn in_block(&self, _: InBlock) -> Option<String> {
        None
    }
}

/// The names that the debug information has.
#[cfg(feature = "explain")]
#[derive(Debug, Default)]
pub(super) struct Names {
    layouts: memreport_analysis::symbols::Members,
    /// The values in blocks, by the starts of the blocks.
    values: std::collections::HashMap<usize, InnerValue>,
}

/// The type of the values in a block.
#[cfg(feature = "explain")]
#[derive(Debug, PartialEq, Eq)]
struct InnerValue {
    type_name: String,
    /// The offset of the first value.
    first: usize,
}

#[cfg(feature = "explain")]
impl InnerValue {
    /// Returns the values of a block of this type; `None` if their place is not known.
    fn of(block_type: &str) -> Option<Self> {
        // The two counts of a shared block precede its value.
        const SHARED: usize = 2 * size_of::<usize>();
        let table = [("[", "]", 0), ("Box<", ">", 0), ("Rc<", ">", SHARED), ("Arc<", ">", SHARED)];
        table.into_iter().find_map(|(before, after, first)| {
            let inner = block_type.strip_prefix(before)?.strip_suffix(after)?;
            let inner = match inner.strip_prefix('[') {
                Some(slice) => slice.strip_suffix(']')?,
                None => inner,
            };
            let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            let array = inner.rsplit_once("; ").filter(|(_, length)| is_number(length));
            let element = array.map_or(inner, |(element, _)| element);
            Some(InnerValue { type_name: element.to_owned(), first })
        })
    }
}

#[cfg(feature = "explain")]
impl Names {
    /// Reads the layouts of the value's type, if it is given, and of the types in these blocks.
    pub(super) fn read(
        value: Option<&str>,
        blocks: impl Iterator<Item = InBlock>,
        freed: &[Freed],
    ) -> Self {
        memreport::__private::as_own(|| {
            let starts: std::collections::HashSet<usize> =
                blocks.map(|block| block.start).collect();
            let of_blocks = freed.iter().filter(|block| starts.contains(&block.address));
            Names::of(value, of_blocks).unwrap_or_default()
        })
    }

    fn of<'f>(value: Option<&str>, blocks: impl Iterator<Item = &'f Freed>) -> Option<Self> {
        use crate::observe::{Allocation, Clock};
        use memreport_analysis::analysis::BlockType;
        use memreport_analysis::read::read_slice;
        use memreport_analysis::symbols::{Options, Symboliser};

        let allocation = |freed: &Freed| Allocation::of(freed.address, freed.block, Clock::now());
        let allocations: Vec<_> = blocks.map(allocation).collect();
        let mut json = Vec::new();
        crate::dump::write_log(&allocations, &mut json).ok()?;
        let mut dump = read_slice(&json).ok()?;
        let mut symboliser = Symboliser::new(Options::default());
        symboliser.symbolicate(&mut dump);
        let inner = dump.blocks.iter().zip(&allocations).filter_map(|(block, allocation)| {
            let block_type = BlockType::of_trace(&dump, dump.trace(block.kind.alloc?));
            let BlockType::Known(name) = block_type else { return None };
            Some((allocation.address(), InnerValue::of(&name)?))
        });
        let values: std::collections::HashMap<_, _> = inner.collect();
        let types = values.values().map(|value| value.type_name.clone());
        let types: Vec<String> = types.chain(value.map(str::to_owned)).collect();
        let layouts = symboliser.members(&dump, &types);
        Some(Names { layouts, values })
    }

    /// Returns the type and the field at an offset of a value of this type.
    pub(super) fn of_value(&self, type_name: &str, at: usize) -> Option<String> {
        let field = self.layouts.get(type_name)?.field_at(at.try_into().ok()?)?;
        Some(format!("{type_name}.{field}"))
    }

    /// Returns the type and the field of a value in a block.
    pub(super) fn in_block(&self, InBlock { start, at }: InBlock) -> Option<String> {
        let InnerValue { type_name, first } = self.values.get(&start)?;
        let size = usize::try_from(self.layouts.get(type_name)?.size).ok()?;
        self.of_value(type_name, at.checked_sub(*first)?.checked_rem(size)?)
    }
}

#[cfg(all(test, feature = "explain"))]
mod tests {
    use super::*;
    use memreport_analysis::symbols::{Layout, Member};

    #[test]
    fn words_of_elements_are_in_the_field_of_the_element() {
        let field = |offset, name: &str| Member { offset, name: name.to_owned() };
        let layout = Layout { size: 24, fields: vec![field(16, "a"), field(0, "b")] };
        let names = |block_type: &str| Names {
            layouts: [("shop::Order".to_owned(), layout.clone())].into(),
            values: InnerValue::of(block_type).map(|value| (64, value)).into_iter().collect(),
        };
        let at = |block_type: &str, at| names(block_type).in_block(InBlock { start: 64, at });
        let (a, b) = (Some("shop::Order.a".to_owned()), Some("shop::Order.b".to_owned()));
        let table = [
            ("[shop::Order]", 40, &a),
            ("[shop::Order]", 24, &b),
            ("Box<shop::Order>", 16, &a),
            ("Rc<shop::Order>", 16, &b),
            ("Box<[shop::Order; 2]>", 40, &a),
            ("Arc<[shop::Order]>", 8, &None),
            ("[shop::Other]", 0, &None),
            ("String", 0, &None),
        ];
        for (block_type, offset, expected) in table {
            assert_eq!(&at(block_type, offset), expected, "{block_type} at {offset}");
        }
    }
}
