//! Measures vectors and matrices of `nalgebra`, of static or dynamic size, and types made of them.
//! *Exact.*

use nalgebra::{
    ArrayStorage, Complex, Const, DefaultAllocator, Dim, DimName, Dyn, Isometry, Matrix, OPoint,
    OVector, Quaternion, Rotation, Scalar, Scale, Similarity, Translation, Unit, VecStorage,
    ViewStorage, allocator::Allocator,
};

use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

owns_nothing!(Dyn);

impl<const D: usize> MallocSizeOf for Const<D> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, _ops: &Ops<'a>) {}
}

/// Measured by its storage.
impl<T, R, C, S: MallocSizeOf> MallocSizeOf for Matrix<T, R, C, S> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.data.add_size_of_excluding_this(ops);
    }
}

impl<T, R, C, S: MallocShallowSizeOf> MallocShallowSizeOf for Matrix<T, R, C, S> {
    #[inline]
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(&self.data);
    }
}

impl<T, R: Dim, C: Dim> MallocShallowSizeOf for VecStorage<T, R, C> {
    #[inline]
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self.as_vec());
    }
}

impl<T: MallocSizeOf, R: Dim, C: Dim> MallocSizeOf for VecStorage<T, R, C> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.as_vec().add_size_of_excluding_this(ops);
    }
}

impl<T: MallocSizeOf, const R: usize, const C: usize> MallocSizeOf for ArrayStorage<T, R, C> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.0.add_size_of_excluding_this(ops);
    }
}

/// Borrowed values belong to their owner.
impl<T, R: Dim, C: Dim, RStride: Dim, CStride: Dim> MallocSizeOf
    for ViewStorage<'_, T, R, C, RStride, CStride>
{
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, _ops: &Ops<'a>) {}
}

impl<T: MallocSizeOf> MallocSizeOf for Unit<T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.as_ref().add_size_of_excluding_this(ops);
    }
}

impl<T: Scalar, D: DimName> MallocSizeOf for OPoint<T, D>
where
    DefaultAllocator: Allocator<D>,
    OVector<T, D>: MallocSizeOf,
{
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.coords.add_size_of_excluding_this(ops);
    }
}

impl<T: MallocSizeOf> MallocSizeOf for Complex<T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.re.add_size_of_excluding_this(ops);
        self.im.add_size_of_excluding_this(ops);
    }
}

impl<T: MallocSizeOf> MallocSizeOf for Quaternion<T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.coords.add_size_of_excluding_this(ops);
    }
}

macro_rules! owns_its_part {
    ($($ty:ident: |$value:ident| $part:expr),* $(,)?) => {$(
        impl<T: Scalar + MallocSizeOf, const D: usize> MallocSizeOf for $ty<T, D> {
            #[inline]
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                let $value = self;
                $part.add_size_of_excluding_this(ops);
            }
        }
    )*};
}

owns_its_part!(
    Translation: |translation| translation.vector,
    Scale: |scale| scale.vector,
    Rotation: |rotation| rotation.matrix(),
);

impl<T: Scalar + MallocSizeOf, R: MallocSizeOf, const D: usize> MallocSizeOf for Isometry<T, R, D> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.rotation.add_size_of_excluding_this(ops);
        self.translation.add_size_of_excluding_this(ops);
    }
}

/// The scaling factor is a number.
impl<T: Scalar + MallocSizeOf, R: MallocSizeOf, const D: usize> MallocSizeOf
    for Similarity<T, R, D>
{
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.isometry.add_size_of_excluding_this(ops);
    }
}
