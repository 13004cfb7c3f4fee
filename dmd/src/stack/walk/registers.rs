//! The registers that a walk begins with.
#![expect(unsafe_code, reason = "reads registers")]

use super::last::Registers;

/// Those of the function that this is inlined in, as if it had called something: the instruction is one past where it is.
#[inline(always)]
pub(crate) fn here() -> Registers {
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
