//! The ways to walk a stack, by their names in `$DMD` and in dumps.

/// How stacks are walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unwinder {
    /// Not decided yet: no stacks.
    None,
    /// Along the saved frame pointers, for programs built with them; in libraries by call frame information.
    FramePointers,
    /// By call frame information, which every program has that can panic.
    Cfi,
    /// Along the saved frame pointers everywhere.
    FramePointersOnly,
    /// By the crate `backtrace`: microseconds, for all others.
    Backtrace,
}

impl Unwinder {
    /// Those that can be wished for.
    pub(crate) const ALL: [Unwinder; 3] =
        [Unwinder::FramePointers, Unwinder::Cfi, Unwinder::Backtrace];

    /// The word in `$DMD`.
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
