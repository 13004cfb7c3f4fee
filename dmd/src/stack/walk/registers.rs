//! The registers that unwinding needs, and their capture.
#![expect(unsafe_code, reason = "reads registers")]

/// The registers that identify a frame. Together with the stack's memory they determine all outer
/// frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Registers {
    pub(crate) stack_pointer: usize,
    pub(crate) frame_pointer: usize,
    pub(crate) instruction: usize,
}

/// Captures the registers of the function that this is inlined into, with the instruction pointer
/// plus one, as after a call.
#[inline(always)]
pub(crate) fn capture() -> Registers {
    let mut here = Registers::default();
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instructions only copy registers.
    unsafe {
        std::arch::asm!(
            "lea {}, [rip]", "mov {}, rsp", "mov {}, rbp",
            out(reg) here.instruction, out(reg) here.stack_pointer, out(reg) here.frame_pointer,
            options(nomem, nostack, preserves_flags)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instructions only copy registers.
    unsafe {
        std::arch::asm!(
            "adr {}, .", "mov {}, sp", "mov {}, x29",
            out(reg) here.instruction, out(reg) here.stack_pointer, out(reg) here.frame_pointer,
            options(nomem, nostack, preserves_flags)
        );
    }
    here.instruction = here.instruction.wrapping_add(1);
    here
}
