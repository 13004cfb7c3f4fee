//! Selects the source of block sizes: the allocator, the tracker's table, or the layout.
#![expect(unsafe_code, reason = "hands a question on to the allocator's declaration")]

use core::alloc::Layout;
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
    /// The block table of an active tracker.
    Table(&'static dyn Tracker),
}

impl SizeSource {
    /// Returns the best source that this program has at the moment.
    pub(crate) fn declared() -> Self {
        #[cfg(feature = "std")]
        return super::declaration::size_source();
        #[cfg(not(feature = "std"))]
        SizeSource::Layout
    }
}

impl fmt::Debug for SizeSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            SizeSource::Layout => "layouts",
            SizeSource::Allocator(_) => "asked",
            SizeSource::Table(_) => "tracked",
        })
    }
}

/// Returns the bytes that count for a block: its usable size if an allocator is declared, otherwise
/// the size of its layout.
///
/// # Safety
///
/// `block` is a live block of the global allocator with this layout.
pub(crate) unsafe fn usable_size(block: *const u8, layout: Layout) -> usize {
    #[cfg(feature = "std")]
    if let Some(usable_size) = super::declaration::usable_size_fn() {
        // SAFETY: the declaration belongs to the global allocator.
        return unsafe { usable_size(block, layout) };
    }
    let _ = block;
    layout.size()
}
