//! Measures the two shapes of collections of `im` and `imbl`: vectors of chunks, and trees whose
//! nodes contain elements. Both share nodes.

use crate::measure::ops::Nodes;
use crate::tracker::words::words_of;
use crate::{MallocSizeOf, Ops};

/// The number of elements in a chunk of a vector.
const CHUNK: usize = 64;

/// A chunk or node with its one or two counts.
#[expect(dead_code, reason = "only its size is of interest")]
struct Counted<const COUNTS: usize, T> {
    counts: [usize; COUNTS],
    value: T,
}

/// A copy of a vector's chunk: the range of its elements, and the elements.
type Chunk<A> = ([usize; 2], [A; CHUNK]);

/// A copy of the topmost node of a vector's middle: its size or a pointer to that, and its
/// children.
type Middle = [usize; 3];

fn is_one<T>(offset: usize, requested: usize) -> bool {
    offset == 0 && [size_of::<Counted<1, T>>(), size_of::<Counted<2, T>>()].contains(&requested)
}

/// Measures a vector. An inline one has its elements within the value itself.
pub(super) fn add_vector<'a, V, A: MallocSizeOf + 'a>(
    ops: &Ops<'a>,
    vector: &'a V,
    is_inline: bool,
    elements: impl Iterator<Item = &'a A>,
) {
    if is_inline {
        return elements.for_each(|element| element.add_size_of_excluding_this(ops));
    }
    let mut nodes = Nodes::new(ops);
    // One chunk, or two at each end and a tree between them. Any words may follow the pointer to a
    // single chunk.
    let chunks = nodes.add_nodes_at(words_of(vector), is_one::<Chunk<A>>);
    if chunks >= 4 {
        nodes.add_nodes_at(words_of(vector), is_one::<Middle>);
    }
    for element in elements {
        if nodes.visit(core::ptr::from_ref(element).addr(), size_of::<A>()) {
            element.add_size_of_excluding_this(ops);
        }
    }
}

/// Implements the trait for sets and maps. Some may contain any words when they are empty.
macro_rules! trees {
    ($($ty:ty $(, unless $is_empty:ident)?: <$($param:ident $(: $($bound:ident)+)?),*> $element:pat => $first:ident $(, $second:ident)?;)*) => {$(
        impl<$($param $(: $($bound +)+)?),*> $crate::MallocSizeOf for $ty {
            fn add_size_of_excluding_this<'a>(&'a self, ops: &$crate::Ops<'a>) {
                ops.add_with(self, |tree, ops| {
                    let mut nodes = $crate::measure::ops::Nodes::new(ops);
                    $(if !tree.$is_empty())? {
                        nodes.add_nodes_at($crate::tracker::words::words_of(tree), |offset, _| offset == 0);
                    }
                    for $element in tree.iter() {
                        let element = (core::ptr::from_ref($first).addr(), size_of_val($first) $(+ size_of_val($second))?);
                        if nodes.visit(element.0, element.1) {
                            $first.add_size_of_excluding_this(ops);
                            $($second.add_size_of_excluding_this(ops);)?
                        }
                    }
                });
            }
        }
    )*};
}

pub(super) use trees;
