//! Measures types that own nothing: numbers, times, addresses, references. *Exact.*

use core::marker::{PhantomData, PhantomPinned};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use core::num::{
    NonZeroI8, NonZeroI16, NonZeroI32, NonZeroI64, NonZeroI128, NonZeroIsize, NonZeroU8,
    NonZeroU16, NonZeroU32, NonZeroU64, NonZeroU128, NonZeroUsize,
};
use core::sync::atomic::{
    AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicU8, AtomicU16,
    AtomicU32, AtomicU64, AtomicUsize,
};
use core::time::Duration;

use crate::{MallocSizeOf, Ops};

macro_rules! owns_nothing {
    ($($ty:ty),* $(,)?) => {$(
        impl $crate::MallocSizeOf for $ty {
            #[inline]
            fn add_size_of_excluding_this<'a>(&'a self, _ops: &$crate::Ops<'a>) {}

            #[inline]
            fn owns_nothing() -> bool {
                true
            }
        }
    )*};
}

owns_nothing!((), bool, char, f32, f64);
owns_nothing!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);
owns_nothing!(NonZeroU8, NonZeroU16, NonZeroU32, NonZeroU64, NonZeroU128, NonZeroUsize);
owns_nothing!(NonZeroI8, NonZeroI16, NonZeroI32, NonZeroI64, NonZeroI128, NonZeroIsize);
owns_nothing!(AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicUsize);
owns_nothing!(AtomicI8, AtomicI16, AtomicI32, AtomicIsize);
#[cfg(target_has_atomic = "64")]
owns_nothing!(AtomicI64, AtomicU64);
owns_nothing!(Duration);
owns_nothing!(IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6);
owns_nothing!(core::cmp::Ordering, core::ops::RangeFull, core::convert::Infallible);
owns_nothing!(core::alloc::Layout, core::any::TypeId, PhantomPinned);
owns_nothing!(core::sync::atomic::Ordering, core::fmt::Arguments<'_>);

macro_rules! slices_own_nothing {
    ($($ty:ty),*) => {$(
        /// Adds nothing: the `Box` or `Rc` owns the block.
        impl MallocSizeOf for $ty {
            #[inline]
            fn add_size_of_excluding_this<'a>(&'a self, _ops: &Ops<'a>) {}
        }
    )*};
}

slices_own_nothing!(str, core::ffi::CStr);

impl<T: ?Sized> MallocSizeOf for PhantomData<T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, _ops: &Ops<'a>) {}
}

/// Borrowed values belong to their owner.
impl<T: ?Sized> MallocSizeOf for &T {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, _ops: &Ops<'a>) {}
}

/// Borrowed values belong to their owner.
impl<T: ?Sized> MallocSizeOf for &mut T {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, _ops: &Ops<'a>) {}
}

macro_rules! functions_own_nothing {
    ($($argument:ident)*) => {
        /// Owns nothing. Other pointers to functions, such as `unsafe fn()` and `fn(&str)`, have no
        /// impl: the derive knows that such a field owns nothing, elsewhere it is ignored.
        impl<R, $($argument),*> MallocSizeOf for fn($($argument),*) -> R {
            #[inline]
            fn add_size_of_excluding_this<'a>(&'a self, _ops: &Ops<'a>) {}
        }
    };
}

functions_own_nothing!();
functions_own_nothing!(A);
functions_own_nothing!(A B);
functions_own_nothing!(A B C);
functions_own_nothing!(A B C D);
functions_own_nothing!(A B C D E);
functions_own_nothing!(A B C D E F);
