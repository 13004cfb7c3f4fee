//! The functions of C in a program that declares DMD: a preloaded library calls them for `malloc`,
//! `free` and `realloc` (see `c_heap`).
#![expect(unsafe_code, reason = "functions of C take raw pointers")]

use std::alloc::{GlobalAlloc, Layout};
use std::ptr;

use memreport::__private::as_c_heap;
use memreport::UsableSize;

use super::allocator::Dmd;
use super::c_heap::{Below, CHeapHooks, UNKNOWN, VERSION, connect, is_below};
use super::start::Place;

impl CHeapHooks {
    /// The hooks of a program whose allocator is `Dmd<A>`.
    #[must_use]
    pub const fn of<A: UsableSize, const IN_TEST: bool>() -> Self {
        // Blocks of `malloc` lie closer together than such an allocator's: the table would lose
        // some.
        let fits = A::SPACING <= <std::alloc::System as UsableSize>::SPACING;
        CHeapHooks {
            version: if fits { VERSION } else { 0 },
            connect,
            alloc: alloc::<A, IN_TEST>,
            free: free::<A, IN_TEST>,
            realloc: realloc::<A, IN_TEST>,
        }
    }
}

/// Returns the hooks for blocks of C, in a program whose allocator is `Dmd<A>`.
fn tracked<A: UsableSize, const IN_TEST: bool>() -> Dmd<Below<A>> {
    let place = if IN_TEST { Place::Test } else { Place::Program };
    // SAFETY: the spacing is `A`'s, and all blocks are the library's.
    unsafe { Dmd::of_c(Below::<A>::THIS, place) }
}

unsafe extern "C" fn alloc<A: UsableSize, const IN_TEST: bool>(
    size: usize,
    align: usize,
    is_zeroed: bool,
) -> *mut u8 {
    let Ok(layout) = Layout::from_size_align(size, align) else { return ptr::null_mut() };
    if is_below() {
        // SAFETY: functions of C take any size.
        return unsafe { allocate(&Below::<A>::THIS, layout, is_zeroed) };
    }
    let tracked = tracked::<A, IN_TEST>();
    // SAFETY: the hooks round a size of 0 up.
    as_c_heap(|| unsafe { allocate(&tracked, layout, is_zeroed) })
}

/// Allocates a block, of zeros on request.
///
/// # Safety
///
/// The same as `GlobalAlloc::alloc`.
#[inline(always)]
unsafe fn allocate(allocator: &impl GlobalAlloc, layout: Layout, is_zeroed: bool) -> *mut u8 {
    if is_zeroed {
        // SAFETY: the caller's contract.
        unsafe { allocator.alloc_zeroed(layout) }
    } else {
        // SAFETY: the caller's contract.
        unsafe { allocator.alloc(layout) }
    }
}

unsafe extern "C" fn free<A: UsableSize, const IN_TEST: bool>(block: *mut u8) {
    if is_below() {
        // SAFETY: the caller's contract.
        return unsafe { Below::<A>::THIS.dealloc(block, UNKNOWN) };
    }
    // SAFETY: the caller's contract. The allocator below needs no layout.
    unsafe { tracked::<A, IN_TEST>().dealloc(block, UNKNOWN) };
}

unsafe extern "C" fn realloc<A: UsableSize, const IN_TEST: bool>(
    block: *mut u8,
    size: usize,
) -> *mut u8 {
    if is_below() {
        // SAFETY: the caller's contract.
        return unsafe { Below::<A>::THIS.realloc(block, UNKNOWN, size) };
    }
    let tracked = tracked::<A, IN_TEST>();
    // SAFETY: the caller's contract. The allocator below needs no layout.
    as_c_heap(|| unsafe { tracked.realloc(block, UNKNOWN, size) })
}

/// Declares the hooks of a program for the functions of C, and the note that leads to them, on
/// systems with such notes.
#[doc(hidden)]
#[macro_export]
macro_rules! __declare_c_heap {
    ($allocator:ty) => {
        // A module, since assembly is no statement: the macro may be called in a function.
        #[doc(hidden)]
        mod __memreport_c_heap {
            #[allow(unused_imports, reason = "the allocator's type may be the caller's")]
            use super::*;

            static HOOKS: $crate::__private::CHeapHooks =
                $crate::__private::CHeapHooks::of::<$allocator, { ::core::cfg!(test) }>();
            $crate::__note_c_heap!(HOOKS);
        }
    };
}
