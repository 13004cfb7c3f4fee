//! The registers that a walk begins with.
#![expect(unsafe_code, reason = "reads registers")]

/// The registers by which a frame is known, and from which the rest of its stack follows: with the memory of the stack, all of
/// it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registers {
    pub(crate) stack_pointer: usize,
    pub(crate) instruction: usize,
    pub(crate) frame_pointer: usize,
}

/// Those of the function that this is inlined in, as if it had called something: the instruction is one past where it is.
#[inline(always)]
pub(crate) fn capture() -> Registers {
    let mut here = Registers::default();
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads registers.
    unsafe {
        std::arch::asm!(
            "lea {}, [rip]", "mov {}, rsp", "mov {}, rbp",
            out(reg) here.instruction, out(reg) here.stack_pointer, out(reg) here.frame_pointer,
            options(nomem, nostack, preserves_flags)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads registers.
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
