//! Measures `Either` by its variant. *Exact* if the variant is.

use either::Either;

use crate::{MallocSizeOf, Ops};

impl<L: MallocSizeOf, R: MallocSizeOf> MallocSizeOf for Either<L, R> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        match self {
            Either::Left(value) => value.add_size_of_excluding_this(ops),
            Either::Right(value) => value.add_size_of_excluding_this(ops),
        }
    }
}
