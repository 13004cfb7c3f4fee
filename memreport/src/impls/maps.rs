//! Implements the traits for maps and sets whose iterators borrow their elements: std's,
//! `hashbrown`'s, `indexmap`'s and `ordermap`'s.

/// Implements both traits for maps and sets.
///
/// The brackets contain the parts of an element and the type parameters that are their types. The
/// expression adds the blocks of the collection itself.
macro_rules! map_like {
    ($($ty:ty, [$($part:ident: $owned:ident),+] $(, $hasher:ident)? => |$map:ident, $ops:ident| $own:expr;)*) => {$(
        impl<$($owned,)+ $($hasher)?> $crate::MallocShallowSizeOf for $ty {
            fn add_shallow_size_of<'a>(&'a self, $ops: &$crate::Ops<'a>) {
                let $map = self;
                $own;
            }
        }

        impl<$($owned: $crate::MallocSizeOf,)+ $($hasher)?> $crate::MallocSizeOf for $ty {
            #[allow(unused_parens, reason = "one pattern serves elements and entries")]
            fn add_size_of_excluding_this<'a>(&'a self, ops: &$crate::Ops<'a>) {
                ops.shallow(self);
                if true $(&& $owned::owns_nothing())+ {
                    return;
                }
                ops.add_with(self, |map, ops| {
                    ops.each_prefetched(map.iter(), |($($part),+)| {
                        $($part.add_size_of_excluding_this(ops);)+
                    });
                });
            }
        }
    )*};
}

pub(super) use map_like;
