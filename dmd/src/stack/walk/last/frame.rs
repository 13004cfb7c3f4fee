//! A frame of a walked stack, with the step to its caller.

use crate::stack::walk::registers::Registers;

/// A frame, and where its caller's frame pointer was saved.
///
/// The two registers that are compared with words of the stack are in one half of it, for one
/// instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub(crate) struct Frame {
    /// The address of the caller's saved frame pointer, or one of the constants below, which are no
    /// addresses.
    pub(crate) saved: usize,
    pub(crate) registers: Registers,
}

const _: () = assert!(size_of::<Frame>() == 32);

impl Frame {
    /// The frame pointer was not saved. In a committed stack the address of the outer frame's own
    /// entry replaces it, whose value is always equal: so all frames are verified alike.
    pub(crate) const UNCHANGED: usize = 0;

    /// The step from this frame cannot be verified: it depends on more than its registers and two
    /// words.
    pub(crate) const OPAQUE: usize = 1;

    /// Opaque, and interrupted by a signal: the frame's code address is exact.
    pub(crate) const INTERRUPTED: usize = 2;

    /// Returns the return address, or the instruction pointer of an interrupted frame.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_frame_is_opaque_and_a_saved_address_is_neither() {
        let frame = |saved| Frame { saved, ..Frame::default() };
        for (saved, is_opaque, is_interrupted) in [
            (Frame::UNCHANGED, false, false),
            (Frame::OPAQUE, true, false),
            (Frame::INTERRUPTED, true, true),
            (0x7fff_ffff_fff8, false, false),
        ] {
            let frame = frame(saved);
            assert_eq!(
                (frame.is_opaque(), frame.is_interrupted()),
                (is_opaque, is_interrupted),
                "{saved:x}"
            );
        }
    }
}
