//! Programs that forbid themselves the system call with which the tracker reads other stacks.
#![expect(unsafe_code, reason = "installs a filter of system calls")]

use std::path::Path;
use std::{io, thread};

use crate::planted::{plant, save};
use crate::{Failure, stacks};

/// Goes on another stack, where the system call fails.
pub(crate) fn fails(path: &Path) -> Result<(), Failure> {
    forbid(libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned())?;
    stacks::own(path)
}

/// Allocates on the stacks of threads after a dump, where hooks must not make the system call that
/// would kill the process.
pub(crate) fn kills(path: &Path) -> Result<(), Failure> {
    let kept = plant(6);
    save(path)?;
    forbid(libc::SECCOMP_RET_KILL_PROCESS)?;
    let more = thread::spawn(|| plant(100)).join().map_err(|_| "a thread panicked")?;
    drop((kept, more, plant(100)));
    Ok(())
}

/// Has the kernel do this whenever the process calls `process_vm_readv`.
fn forbid(action: u32) -> Result<(), Failure> {
    let code = |code: u32| u16::try_from(code).unwrap_or(0);
    let step =
        |operation: u32, k: u32, jf: u8| libc::sock_filter { code: code(operation), jt: 0, jf, k };
    let number = u32::try_from(libc::SYS_process_vm_readv)?;
    let mut steps = [
        // The number of the system call is the first word of what the filter sees.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, number, 1),
        step(libc::BPF_RET | libc::BPF_K, action, 0),
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let filter = libc::sock_fprog { len: 4, filter: steps.as_mut_ptr() };
    // SAFETY: without new privileges any process may set a filter.
    let failed = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0
        // SAFETY: the kernel reads the filter during the call.
        || unsafe {
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter)
        } != 0;
    if failed { Err(io::Error::last_os_error().into()) } else { Ok(()) }
}
