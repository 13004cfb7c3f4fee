//! The names under which programs find the functions.
#![expect(unsafe_code, reason = "exports functions of C")]

use std::ffi::{CStr, c_int, c_void};

use crate::functions;

/// Exports functions, and lists their names and addresses.
macro_rules! export {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        $(
            /// See [`functions`].
            ///
            /// # Safety
            ///
            /// The same as the function's in [`functions`].
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
                #[allow(unused_unsafe, reason = "some take any arguments")]
                // SAFETY: the caller's contract.
                unsafe { functions::$name($($argument),*) }
            }
        )*

        /// Returns the functions with their names. The addresses are this library's, whichever
        /// functions of these names the process has.
        pub(crate) fn addresses() -> Vec<(&'static CStr, usize)> {
            let name = |name: &'static str| CStr::from_bytes_with_nul(name.as_bytes());
            let all = [$((name(concat!(stringify!($name), "\0")), functions::$name as *const () as usize)),*];
            all.into_iter().filter_map(|(name, address)| Some((name.ok()?, address))).collect()
        }
    };
}

export! {
    fn malloc(size: usize) -> *mut c_void;
    fn calloc(count: usize, size: usize) -> *mut c_void;
    fn realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void;
    fn free(block: *mut c_void);
    fn free_sized(block: *mut c_void, size: usize);
    fn free_aligned_sized(block: *mut c_void, align: usize, size: usize);
    fn cfree(block: *mut c_void);
    fn posix_memalign(place: *mut *mut c_void, align: usize, size: usize) -> c_int;
    fn aligned_alloc(align: usize, size: usize) -> *mut c_void;
    fn memalign(align: usize, size: usize) -> *mut c_void;
    fn valloc(size: usize) -> *mut c_void;
    fn pvalloc(size: usize) -> *mut c_void;
    fn malloc_usable_size(block: *mut c_void) -> usize;
}
