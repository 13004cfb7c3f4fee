//! The ways to walk a stack, by their names in `$DMD` and in dumps.

/// A way to walk a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unwinder {
    /// Not chosen yet: no stacks.
    None,
    /// Saved frame pointers, for programs built with them. In libraries, call frame information
    /// (CFI).
    FramePointers,
    /// Call frame information (CFI), which every program has that can panic.
    Cfi,
    /// Saved frame pointers, in libraries too.
    FramePointersOnly,
    /// The crate `backtrace`: microseconds per stack. The fallback.
    Backtrace,
}

impl Unwinder {
    /// The unwinders that `$DMD` can request.
    pub(crate) const ALL: [Unwinder; 3] =
        [Unwinder::FramePointers, Unwinder::Cfi, Unwinder::Backtrace];

    /// Returns the word in `$DMD`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Unwinder::None => "none",
            Unwinder::Cfi => "cfi",
            Unwinder::FramePointers | Unwinder::FramePointersOnly => "frame-pointers",
            Unwinder::Backtrace => "backtrace",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Unwinder::None => "none",
            Unwinder::Cfi => "call frame information",
            Unwinder::FramePointers | Unwinder::FramePointersOnly => "frame pointers",
            Unwinder::Backtrace => "backtrace",
        }
    }
}
