//! The blocks of C's functions in a program that declares DMD, if a library with these functions is
//! preloaded (`dmd-preload`).
//!
//! ```text
//! C code ──▶ the library's malloc ──▶ c_functions ──▶ Dmd<Below> ──▶ CHeapBelow ──▶ glibc's malloc
//! Rust ──▶ Dmd<System> ──▶ below: System ──▶ the library's malloc ──▶ c_functions ──▶ CHeapBelow
//! ```
//!
//! The library finds [`CHeapHooks`] by an ELF note of the program. Rust's allocator may call
//! `malloc` itself: a block of Rust passes the functions of C a second time, below the hook that
//! has it already, and is not counted again. Both sorts of blocks are in one table.
#![expect(unsafe_code, reason = "calls the functions of an allocator")]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};

use memreport::UsableSize;

use crate::sample::plan::plan;

/// The version of the two tables of functions below.
pub(super) const VERSION: usize = 1;

/// The hooks of a program, for the functions of C.
#[repr(C)]
#[derive(Debug)]
pub struct CHeapHooks {
    pub(super) version: usize,
    pub(super) connect: extern "C" fn(&'static CHeapBelow),
    pub(super) alloc: unsafe extern "C" fn(usize, usize, bool) -> *mut u8,
    pub(super) free: unsafe extern "C" fn(*mut u8),
    pub(super) realloc: unsafe extern "C" fn(*mut u8, usize) -> *mut u8,
}

/// The allocator below the hooks of C's functions. Its blocks need no layout to be freed.
#[repr(C)]
#[derive(Debug)]
pub struct CHeapBelow {
    version: usize,
    alloc: unsafe extern "C" fn(usize, usize, bool) -> *mut u8,
    free: unsafe extern "C" fn(*mut u8),
    realloc: unsafe extern "C" fn(*mut u8, usize) -> *mut u8,
    usable_size: unsafe extern "C" fn(*const u8) -> usize,
}

impl CHeapHooks {
    pub(super) fn has_this_version(&self) -> bool {
        self.version == VERSION
    }

    /// Connects the library to the program, before the program's first block.
    pub(super) fn connect(&self, below: &'static CHeapBelow) {
        (self.connect)(below);
    }

    /// Allocates a block with this size and alignment, of zeros on request. Returns null if there
    /// is no memory.
    #[must_use]
    pub fn alloc(&self, layout: Layout, is_zeroed: bool) -> *mut u8 {
        // SAFETY: the program takes any layout.
        unsafe { (self.alloc)(layout.size(), layout.align(), is_zeroed) }
    }

    /// Frees a block.
    ///
    /// # Safety
    ///
    /// `block` is a live block of C's functions.
    pub unsafe fn free(&self, block: *mut u8) {
        // SAFETY: the caller's contract.
        unsafe { (self.free)(block) };
    }

    /// Resizes a block. Returns null if there is no memory.
    ///
    /// # Safety
    ///
    /// `block` is a live block of C's functions, and the size is not 0.
    pub unsafe fn realloc(&self, block: *mut u8, size: usize) -> *mut u8 {
        // SAFETY: the caller's contract.
        unsafe { (self.realloc)(block, size) }
    }
}

impl CHeapBelow {
    /// The functions of an allocator that ignores layouts.
    #[must_use]
    pub const fn of<A: ZeroSizedMalloc>() -> Self {
        CHeapBelow {
            version: VERSION,
            alloc: below_alloc::<A>,
            free: below_free::<A>,
            realloc: below_realloc::<A>,
            usable_size: below_usable_size::<A>,
        }
    }

    /// Returns the address of a function of the library.
    pub(crate) fn code(&self) -> usize {
        self.alloc as *const () as usize
    }
}

/// An allocator whose value is a constant, and which needs no layout to free, resize or measure a
/// block.
///
/// # Safety
///
/// Every layout is accepted for a live block.
pub unsafe trait ZeroSizedMalloc: UsableSize {
    /// The value.
    const MALLOC: Self;
}

/// The layout of a block of which nothing is known.
pub(super) const UNKNOWN: Layout = Layout::new::<()>();

unsafe extern "C" fn below_alloc<A: ZeroSizedMalloc>(
    size: usize,
    align: usize,
    is_zeroed: bool,
) -> *mut u8 {
    let Ok(layout) = Layout::from_size_align(size, align) else { return ptr::null_mut() };
    if is_zeroed {
        // SAFETY: functions of C take any size.
        unsafe { A::MALLOC.alloc_zeroed(layout) }
    } else {
        // SAFETY: as above.
        unsafe { A::MALLOC.alloc(layout) }
    }
}

unsafe extern "C" fn below_free<A: ZeroSizedMalloc>(block: *mut u8) {
    // SAFETY: a live block by the caller's contract; the allocator needs no layout.
    unsafe { A::MALLOC.dealloc(block, UNKNOWN) };
}

unsafe extern "C" fn below_realloc<A: ZeroSizedMalloc>(block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: as above.
    unsafe { A::MALLOC.realloc(block, UNKNOWN, size) }
}

unsafe extern "C" fn below_usable_size<A: ZeroSizedMalloc>(block: *const u8) -> usize {
    // SAFETY: as above.
    unsafe { A::MALLOC.usable_size(block, UNKNOWN) }
}

/// The library's functions, or null.
static BELOW: AtomicPtr<CHeapBelow> = AtomicPtr::new(ptr::null_mut());

memreport::__hook_local! {
    /// True while this thread is below a hook of the program's allocator.
    static IS_BELOW: Cell<bool> = Cell::new(false), "memreport_hook_below"
}

/// Returns whether a library passes the calls of C's functions to this program.
pub(crate) fn is_connected() -> bool {
    library().is_some()
}

/// Returns the functions of the library, if there is one.
pub(crate) fn library() -> Option<&'static CHeapBelow> {
    // Acquire, with the Release of `connect`.
    // SAFETY: null, or a static of a library that is never unloaded.
    unsafe { BELOW.load(Acquire).as_ref() }
}

/// Calls a function of the inner allocator. If it calls functions of C, these do not count its
/// blocks.
#[inline(always)]
pub(super) fn below<R>(call: impl FnOnce() -> R) -> R {
    if plan().has_c_heap() { marked_as_below(call) } else { call() }
}

#[inline(never)]
fn marked_as_below<R>(call: impl FnOnce() -> R) -> R {
    let before = IS_BELOW.try_with(|is_below| is_below.replace(true)).unwrap_or(false);
    let result = call();
    let _ = IS_BELOW.try_with(|is_below| is_below.set(before));
    result
}

pub(super) fn is_below() -> bool {
    IS_BELOW.try_with(Cell::get).unwrap_or(false)
}

/// Notes the library's functions.
pub(super) extern "C" fn connect(below: &'static CHeapBelow) {
    if below.version == VERSION {
        // Release, with the Acquire of `library`.
        BELOW.store(ptr::from_ref(below).cast_mut(), Release);
    }
}

/// The allocator below C's functions. It has the spacing of the program's allocator `A`: both are
/// in one table.
pub(super) struct Below<A>(PhantomData<fn() -> A>);

impl<A: UsableSize> Below<A> {
    pub(super) const THIS: Self = Below(PhantomData);
}

// SAFETY: all calls go to the library's functions, which belong to one malloc.
unsafe impl<A: UsableSize> GlobalAlloc for Below<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(library) = library() else { return ptr::null_mut() };
        // SAFETY: functions of C take any size.
        unsafe { (library.alloc)(layout.size(), layout.align(), false) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some(library) = library() else { return ptr::null_mut() };
        // SAFETY: as above.
        unsafe { (library.alloc)(layout.size(), layout.align(), true) }
    }

    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        if let Some(library) = library() {
            // SAFETY: a live block, by the caller's contract.
            unsafe { (library.free)(block) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, _layout: Layout, size: usize) -> *mut u8 {
        let Some(library) = library() else { return ptr::null_mut() };
        // SAFETY: as above.
        unsafe { (library.realloc)(block, size) }
    }
}

// SAFETY: the allocator that has the blocks answers. The spacing of malloc's blocks is a multiple
// of `A`'s, or the hooks have no version.
unsafe impl<A: UsableSize> UsableSize for Below<A> {
    const SPACING: usize = A::SPACING;
    const ALIGN: usize = A::ALIGN;
    const READS_HEADER: bool = A::READS_HEADER;

    unsafe fn usable_size(&self, block: *const u8, _layout: Layout) -> usize {
        let Some(library) = library() else { return 0 };
        // SAFETY: a live block, by the caller's contract.
        unsafe { (library.usable_size)(block) }
    }
}
