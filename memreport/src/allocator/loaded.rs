//! The library that this code is part of stays loaded: threads that end call back into it, whenever that is.
#![expect(unsafe_code, reason = "asks the dynamic linker")]

/// Has the dynamic linker never unload this code. Runs when it is loaded.
///
/// A program is never unloaded. A plugin with an allocator of ours may be, while threads live that have allocated with it.
#[cfg(all(target_os = "linux", not(miri)))]
pub extern "C" fn stay_loaded() {
    use core::ffi::c_void;

    // SAFETY: a plain call; the address is of the program's own headers.
    let program = unsafe { libc::getauxval(libc::AT_PHDR) };
    let Some(own) = module(stay_loaded as *const c_void) else { return };
    let program = usize::try_from(program).ok().map(core::ptr::without_provenance);
    if program.and_then(module).is_some_and(|program| program.dli_fbase == own.dli_fbase) {
        return;
    }
    let how = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: a name that the linker itself has given; nothing is loaded or run.
    unsafe { libc::dlopen(own.dli_fname, how) };
}

/// What the dynamic linker knows of the file that this address is in.
#[cfg(all(target_os = "linux", not(miri)))]
fn module(address: *const core::ffi::c_void) -> Option<libc::Dl_info> {
    let mut found = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: a valid place for the answer.
    let is_found = unsafe { libc::dladdr(address, found.as_mut_ptr()) } != 0;
    // SAFETY: all zeros is valid as well.
    is_found.then(|| unsafe { found.assume_init() })
}

/// Nothing is known of the linker here.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub extern "C" fn stay_loaded() {}
