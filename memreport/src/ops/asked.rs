//! Whom to ask for the size of a block.
#![expect(unsafe_code, reason = "hands a question on to the allocator's declaration")]

use core::alloc::Layout;
use core::fmt;

use crate::tracker::Tracker;

/// How much of a block may be used, asked of the global allocator.
pub(crate) type UsableSizeFn = unsafe fn(*const u8, Layout) -> usize;

/// Whom to ask for the size of a block.
#[derive(Clone, Copy)]
pub(crate) enum Sizes {
    /// Nobody: the layout is the best that is known.
    Layouts,
    /// The allocator.
    #[cfg_attr(
        not(feature = "std"),
        expect(dead_code, reason = "without std, no allocator is declared")
    )]
    Asked(UsableSizeFn),
    /// The table of all blocks.
    Tracked(&'static dyn Tracker),
}

impl Sizes {
    /// The best that this program has at the moment.
    pub(crate) fn declared() -> Self {
        #[cfg(feature = "std")]
        return crate::allocator::sizes();
        #[cfg(not(feature = "std"))]
        Sizes::Layouts
    }
}

impl fmt::Debug for Sizes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Sizes::Layouts => "layouts",
            Sizes::Asked(_) => "asked",
            Sizes::Tracked(_) => "tracked",
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
    if let Some(usable_size) = crate::allocator::asked() {
        // SAFETY: the declaration is that of the global allocator.
        return unsafe { usable_size(block, layout) };
    }
    let _ = block;
    layout.size()
}
