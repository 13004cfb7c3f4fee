//! Whom to ask for the size of a block.
#![expect(unsafe_code, reason = "hands a question on to the allocator's declaration")]

use core::alloc::Layout;
use core::fmt;

use crate::tracker::Tracker;

/// How much of a block may be used, asked of the global allocator.
pub(crate) type UsableSizeFn = unsafe fn(*const u8, Layout) -> usize;

/// Whom to ask for the size of a block.
#[derive(Clone, Copy)]
pub(crate) enum SizeSource {
    /// Nobody: the layout is the best that is known.
    Layout,
    /// The allocator.
    #[cfg_attr(
        not(feature = "std"),
        expect(dead_code, reason = "without std, no allocator is declared")
    )]
    Allocator(UsableSizeFn),
    /// The table of all blocks.
    Table(&'static dyn Tracker),
}

impl SizeSource {
    /// The best that this program has at the moment.
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

/// What counts for a block: its usable size where the allocator is declared, its layout's elsewhere.
///
/// # Safety
///
/// `block` is a live block of the global allocator with this layout.
pub(crate) unsafe fn usable_size(block: *const u8, layout: Layout) -> usize {
    #[cfg(feature = "std")]
    if let Some(usable_size) = super::declaration::usable_size_fn() {
        // SAFETY: the declaration is that of the global allocator.
        return unsafe { usable_size(block, layout) };
    }
    let _ = block;
    layout.size()
}
