//! The macro that declares the program's allocator.

/// Declares the program's global allocator, tracked by DMD.
///
/// Without arguments the inner allocator is the system's; otherwise the arguments are those of
/// `memreport::global_allocator!`. Put it into `main.rs`, and into the first file of a test binary:
/// in tests DMD keeps the table of blocks even without `$DMD`, since
/// [`assert_fully_reported!`](crate::assert_fully_reported) needs it.
///
/// ```
/// dmd::global_allocator!();
///
/// fn main() {
///     let words = vec![String::from("heap")];
///     assert_eq!(memreport::measure(&words).blocks, 2);
/// }
/// ```
#[macro_export]
macro_rules! global_allocator {
    ($($allocator:tt)*) => {
        $crate::__private::memreport::__with_allocator!([$crate::__declare_tracked] $($allocator)*);
    };
}

/// Declares an allocator whose blocks are tracked.
#[doc(hidden)]
#[macro_export]
macro_rules! __declare_tracked {
    (($value:expr): $allocator:ty) => {
        $crate::__private::memreport::__declare_allocator!(
            $crate::Dmd<$allocator>,
            {
                let inner: $allocator = $value;
                // SAFETY: it becomes the global allocator, of which a program has one.
                unsafe { $crate::Dmd::new(inner, ::core::cfg!(test)) }
            },
            ::core::option::Option::Some(&$crate::__private::Tracking::<$allocator>::NEW)
        );
        $crate::__private::at_start!();
        $crate::__declare_c_heap!($allocator);
    };
}

/// Declares the allocator of a preloaded library: a value that calls the library's one [`Dmd`], and
/// the inner allocator's type.
///
/// [`Dmd`]: crate::Dmd
#[doc(hidden)]
#[macro_export]
macro_rules! __declare_preloaded {
    ($type:ty, $value:expr, $inner:ty) => {
        $crate::__private::memreport::__declare_allocator!(
            $type,
            $value,
            ::core::option::Option::Some(&$crate::__private::Tracking::<$inner>::NEW)
        );
        const _: () = {
            $crate::__before_main! {
                static AT_START: extern "C" fn(
                    ::core::ffi::c_int,
                    *const *const ::core::ffi::c_char,
                ) = $crate::__private::at_start_preloaded;
            }
        };
    };
}
