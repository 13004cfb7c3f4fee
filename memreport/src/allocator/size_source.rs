//! Selects the source of block sizes: the allocator, the tracker's table, or the layout.

use core::alloc::Layout;
use core::ffi::c_void;
use core::fmt;

use crate::tracker::Tracker;

/// A function that returns the usable bytes of a block of the global allocator.
pub(crate) type UsableSizeFn = unsafe fn(*const u8, Layout) -> usize;

/// The source of block sizes in a measurement.
#[derive(Clone, Copy)]
pub(crate) enum SizeSource {
    /// The layout: no allocator is declared.
    Layout,
    /// The declared allocator.
    #[cfg_attr(
        not(feature = "std"),
        expect(dead_code, reason = "without std, no allocator is declared")
    )]
    Allocator(UsableSizeFn),
    /// A function of the caller's, which returns the usable bytes of a block by its start.
    Function(unsafe fn(*const c_void) -> usize),
    /// The block table of an active tracker.
    Table(&'static dyn Tracker),
}

impl fmt::Debug for SizeSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            SizeSource::Layout => "layouts",
            SizeSource::Allocator(_) => "allocator",
            SizeSource::Function(_) => "function",
            SizeSource::Table(_) => "tracked",
        })
    }
}
