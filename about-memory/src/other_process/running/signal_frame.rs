//! Makes the state that the kernel restores when a signal handler returns: `rt_sigframe` of Linux
//! on x86-64 (`arch/x86/include/uapi/asm/sigcontext.h` and `ucontext.h`).

use super::trace::Registers;

/// The bytes of `struct ucontext` with its signal context and mask.
const CONTEXT: usize = 304;

/// The places in it.
const FLAGS: usize = 0;
const STACK_FLAGS: usize = 24;
const REGISTERS: usize = 40;
const MASK: usize = 296;

/// `UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS`
const CONTEXT_FLAGS: u64 = 7;

/// A value that the kernel refuses, so that the stack for signal handlers stays as it is.
const KEEP_STACK: u64 = 0xffff;

/// The place in the floating-point state that describes it: `struct _fpx_sw_bytes`.
const DESCRIPTION: usize = 464;
const FIRST_MAGIC: u32 = 0x4650_5853;
const SECOND_MAGIC: u32 = 0x4650_5845;

/// The alignment of the floating-point state.
const ALIGN: u64 = 64;

/// The bytes below the frame for what a called function pushes.
pub(super) const ROOM: u64 = 1024;

/// A thread's state: the registers with which it goes on, the floating-point state as ptrace(2)
/// returns it, and the signals that it blocks.
pub(crate) struct ThreadState<'a> {
    pub(crate) registers: &'a Registers,
    pub(crate) floating_point: &'a [u8],
    pub(crate) blocked: u64,
}

/// Bytes to write at an address of a stack.
pub(crate) struct Frame {
    /// The stack pointer at the entry of a function that returns to `rt_sigreturn(2)`.
    pub(crate) address: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Frame {
    /// Makes a frame that ends below an address. `returns_to` is the code of `rt_sigreturn(2)`.
    pub(crate) fn below(end: u64, state: &ThreadState<'_>, returns_to: u64) -> Self {
        let floating_point = described(state.floating_point);
        let place = end.saturating_sub(floating_point.len() as u64) & !(ALIGN - 1);
        // At the entry of a function, the stack pointer is a word below a multiple of 16.
        let address = (place.saturating_sub(8 + CONTEXT as u64) & !15).saturating_sub(8);
        let mut bytes = returns_to.to_le_bytes().to_vec();
        bytes.extend(context(state, place));
        bytes.resize(usize::try_from(place - address).unwrap_or(0), 0);
        bytes.extend(floating_point);
        Frame { address, bytes }
    }
}

/// Returns the floating-point state with the description that the kernel wants.
fn described(state: &[u8]) -> Vec<u8> {
    let mut bytes = state.to_vec();
    let size = u32::try_from(bytes.len()).unwrap_or(0);
    if let Some(place) = bytes.get_mut(DESCRIPTION..DESCRIPTION + 20) {
        // ptrace(2) has the features of the processor here.
        let features: [u8; 8] = place[..8].try_into().unwrap_or_default();
        place[..4].copy_from_slice(&FIRST_MAGIC.to_le_bytes());
        place[4..8].copy_from_slice(&(size + 4).to_le_bytes());
        place[8..16].copy_from_slice(&features);
        place[16..].copy_from_slice(&size.to_le_bytes());
    }
    bytes.extend(SECOND_MAGIC.to_le_bytes());
    bytes
}

fn context(state: &ThreadState<'_>, floating_point: u64) -> [u8; CONTEXT] {
    let mut bytes = [0; CONTEXT];
    let mut put = |at: usize, word: u64| bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    put(FLAGS, CONTEXT_FLAGS);
    put(STACK_FLAGS, KEEP_STACK);
    let of = state.registers;
    let segments = of.cs & 0xffff | (of.ss & 0xffff) << 48;
    let words = [
        of.r8,
        of.r9,
        of.r10,
        of.r11,
        of.r12,
        of.r13,
        of.r14,
        of.r15,
        of.rdi,
        of.rsi,
        of.rbp,
        of.rbx,
        of.rdx,
        of.rax,
        of.rcx,
        of.rsp,
        of.rip,
        of.eflags,
        segments,
        // The error, the trap, the old mask, and the address of a fault.
        0,
        0,
        0,
        0,
        floating_point,
    ];
    for (index, word) in words.into_iter().enumerate() {
        put(REGISTERS + 8 * index, word);
    }
    put(MASK, state.blocked);
    bytes
}

/// Returns the registers with which a stopped thread goes on: one in a system call that was
/// interrupted makes it again, as the kernel would have it (signal(7)).
pub(crate) fn resumed(stopped: &Registers) -> Registers {
    /// `restart_syscall(2)`
    const RESTART: u64 = 219;
    let mut registers = *stopped;
    registers.orig_rax = u64::MAX;
    if stopped.orig_rax.cast_signed() < 0 {
        return registers;
    }
    // ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND and ERESTART_RESTARTBLOCK: of the kernel alone.
    let number = match stopped.rax.cast_signed() {
        -514..=-512 => stopped.orig_rax,
        -516 => RESTART,
        _ => return registers,
    };
    registers.rax = number;
    registers.rip = registers.rip.wrapping_sub(2);
    registers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The registers of a thread in a system call with this number and result.
    fn registers(orig_rax: i64, rax: i64) -> Registers {
        Registers {
            r15: 15,
            r14: 14,
            r13: 13,
            r12: 12,
            rbp: 6,
            rbx: 3,
            r11: 11,
            r10: 10,
            r9: 9,
            r8: 8,
            rax: rax.cast_unsigned(),
            rcx: 2,
            rdx: 4,
            rsi: 5,
            rdi: 7,
            orig_rax: orig_rax.cast_unsigned(),
            rip: 1000,
            cs: 0x33,
            eflags: 0x246,
            rsp: 0x7fff_0000,
            ss: 0x2b,
            fs_base: 1,
            gs_base: 1,
            ds: 0,
            es: 0,
            fs: 0,
            gs: 0,
        }
    }

    #[test]
    fn an_interrupted_call_is_made_again() {
        let of = |orig_rax, rax| {
            let after = resumed(&registers(orig_rax, rax));
            assert_eq!(after.orig_rax, u64::MAX);
            (after.rip, after.rax.cast_signed())
        };
        for rax in [-512, -513, -514] {
            assert_eq!(of(7, rax), (998, 7));
        }
        assert_eq!(of(7, -516), (998, 219), "it has a state of its own");
        assert_eq!(of(7, -515), (1000, -515));
        assert_eq!(of(7, -4), (1000, -4), "it has returned");
        assert_eq!(of(7, 100), (1000, 100));
        assert_eq!(of(-1, -512), (1000, -512), "it is in no call");
    }

    #[test]
    fn a_frame_is_below_its_end_and_aligned() {
        let registers = registers(7, 1);
        let floating_point = [1; 832];
        for end in 0x7fff_0000..0x7fff_0100 {
            let state =
                ThreadState { registers: &registers, floating_point: &floating_point, blocked: 9 };
            let Frame { address, bytes } = Frame::below(end, &state, 0x1234);
            assert_eq!(address % 16, 8);
            let above = address + bytes.len() as u64;
            assert!(above <= end && above + 128 > end, "{above:x} {end:x}");
            let word = |at: usize| {
                bytes[at..at + 8].try_into().map(u64::from_le_bytes).expect("eight bytes")
            };
            let context = 8 + REGISTERS;
            assert_eq!((word(0), word(8 + MASK)), (0x1234, 9));
            assert_eq!((word(context), word(context + 15 * 8)), (8, registers.rsp));
            assert_eq!(word(context + 18 * 8), 0x33 | 0x2b << 48);
            let place = word(context + 23 * 8);
            assert_eq!(place % 64, 0);
            let at = usize::try_from(place - address).expect("it is inside");
            assert_eq!(bytes.len(), at + 832 + 4);
            assert_eq!(word(at + 464), u64::from(FIRST_MAGIC) | 836 << 32);
            assert_eq!(word(at + 480) & 0xffff_ffff, 832);
        }
    }
}
