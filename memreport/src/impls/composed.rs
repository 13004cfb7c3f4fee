//! Measures types by their parts: tuples, options, ranges, wrappers. *Exact* if the parts are.

use core::cmp::Reverse;
use core::mem::ManuallyDrop;
use core::num::{Saturating, Wrapping};
use core::ops::{Bound, ControlFlow, Range, RangeFrom, RangeInclusive, RangeTo, RangeToInclusive};
use core::task::Poll;

use crate::{Lookahead, MallocSizeOf, Ops};

macro_rules! tuples {
    ($first:ident $($rest:ident)*) => {
        impl<$first: MallocSizeOf, $($rest: MallocSizeOf),*> MallocSizeOf for ($first, $($rest,)*) {
            #[inline]
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                #[expect(non_snake_case, reason = "one name serves the type and the value")]
                let ($first, $($rest,)*) = self;
                $first.add_size_of_excluding_this(ops);
                $($rest.add_size_of_excluding_this(ops);)*
            }

            #[inline]
            fn owns_nothing() -> bool {
                $first::owns_nothing() $(&& $rest::owns_nothing())*
            }

            #[inline]
            fn prefetch(&self, ahead: Lookahead<'_>) {
                #[expect(non_snake_case, reason = "one name serves the type and the value")]
                let ($first, $($rest,)*) = self;
                $first.prefetch(ahead);
                $($rest.prefetch(ahead);)*
            }

            #[inline]
            fn prefetch_pointees(&self, ahead: Lookahead<'_>) {
                #[expect(non_snake_case, reason = "one name serves the type and the value")]
                let ($first, $($rest,)*) = self;
                $first.prefetch_pointees(ahead);
                $($rest.prefetch_pointees(ahead);)*
            }
        }
        tuples!($($rest)*);
    };
    () => {};
}

tuples!(A B C D E F G H I J K L);

/// Implements the trait. Each pattern binds the parts that may own heap.
macro_rules! owns_its_parts {
    ($(<$($param:ident),*> $ty:ty { $($pattern:pat => [$($part:expr),*]),* $(,)? })*) => {$(
        impl<$($param: MallocSizeOf),*> MallocSizeOf for $ty {
            #[inline]
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                match self {
                    $($pattern => { $($part.add_size_of_excluding_this(ops);)* })*
                }
            }

            #[inline]
            fn owns_nothing() -> bool {
                true $(&& $param::owns_nothing())*
            }

            #[inline]
            fn prefetch(&self, ahead: Lookahead<'_>) {
                match self {
                    $($pattern => { $($part.prefetch(ahead);)* })*
                }
            }

            #[inline]
            fn prefetch_pointees(&self, ahead: Lookahead<'_>) {
                match self {
                    $($pattern => { $($part.prefetch_pointees(ahead);)* })*
                }
            }
        }
    )*};
}

impl<T: MallocSizeOf> MallocSizeOf for Option<T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.iter().for_each(|value| value.add_size_of_excluding_this(ops));
    }

    #[inline]
    fn owns_nothing() -> bool {
        T::owns_nothing()
    }

    #[inline]
    fn prefetch(&self, ahead: Lookahead<'_>) {
        T::prefetch_option(self.as_ref(), ahead);
    }

    #[inline]
    fn prefetch_pointees(&self, ahead: Lookahead<'_>) {
        self.iter().for_each(|value| value.prefetch_pointees(ahead));
    }
}

owns_its_parts! {
    <T, E> Result<T, E> { Ok(value) => [value], Err(error) => [error] }
    <T> Poll<T> { Poll::Ready(value) => [value], Poll::Pending => [] }
    <B, C> ControlFlow<B, C> { ControlFlow::Break(value) => [value], ControlFlow::Continue(value) => [value] }
    <T> Bound<T> { Bound::Included(value) | Bound::Excluded(value) => [value], Bound::Unbounded => [] }
    <T> Range<T> { Range { start, end } => [start, end] }
    <T> RangeFrom<T> { RangeFrom { start } => [start] }
    <T> RangeTo<T> { RangeTo { end } => [end] }
    <T> RangeInclusive<T> { range => [range.start(), range.end()] }
    <T> RangeToInclusive<T> { RangeToInclusive { end } => [end] }
    <T> Reverse<T> { Reverse(value) => [value] }
    <T> Wrapping<T> { Wrapping(value) => [value] }
    <T> Saturating<T> { Saturating(value) => [value] }
}

/// Measured like the value, which owns its blocks whether or not they will be freed.
impl<T: ?Sized + MallocSizeOf> MallocSizeOf for ManuallyDrop<T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        T::add_size_of_excluding_this(self, ops);
    }
}
