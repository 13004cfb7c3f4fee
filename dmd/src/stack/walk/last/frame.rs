//! A frame of a walked stack.

use crate::stack::walk::registers::Registers;

/// A frame, and how its caller was come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) registers: Registers,
    /// Where the caller's frame pointer was read; or one of those below, which are no addresses.
    pub(crate) saved: usize,
}

impl Frame {
    /// The frame pointer was left as it was. In a last stack it is instead the address of the caller's in that stack, where
    /// of course it is what it was: so every frame is retraced alike.
    pub(crate) const UNCHANGED: usize = 0;

    /// The way from this frame is not to be retraced: it depends on more than its registers and two words.
    pub(crate) const OPAQUE: usize = 1;

    /// So is the way from a frame that was interrupted, by a signal or by this walk: its code is found up otherwise.
    pub(crate) const INTERRUPTED: usize = 2;

    /// The address in the code.
    #[inline]
    pub(crate) fn address(self) -> usize {
        self.registers.instruction
    }

    #[inline(always)]
    pub(crate) fn is_opaque(self) -> bool {
        self.saved & (Frame::OPAQUE | Frame::INTERRUPTED) != 0
    }

    #[inline(always)]
    pub(crate) fn is_interrupted(self) -> bool {
        self.saved == Frame::INTERRUPTED
    }
}
