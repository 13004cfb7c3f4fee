//! Keeps the library that contains this code loaded, because ending threads call back into it.
#![expect(unsafe_code, reason = "asks the dynamic linker")]

/// Tells the dynamic linker never to unload this code. Runs when the code is loaded.
///
/// A program is never unloaded. A plugin that declares an allocator may be, while threads that have
/// allocated with it still run.
#[cfg(all(target_os = "linux", not(miri)))]
pub extern "C" fn stay_loaded() {
    use core::ffi::c_void;

    // SAFETY: a plain call; it returns the address of the program's own headers.
    let program = unsafe { libc::getauxval(libc::AT_PHDR) };
    let Some(own) = module(stay_loaded as *const c_void) else { return };
    let program = usize::try_from(program).ok().map(core::ptr::without_provenance);
    if program.and_then(module).is_some_and(|program| program.dli_fbase == own.dli_fbase) {
        return;
    }
    let how = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: the name comes from the linker itself; nothing is loaded or run.
    unsafe { libc::dlopen(own.dli_fname, how) };
}

/// Returns the dynamic linker's description of the file that contains this address.
#[cfg(all(target_os = "linux", not(miri)))]
fn module(address: *const core::ffi::c_void) -> Option<libc::Dl_info> {
    let mut found = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: a valid location for the answer.
    let is_found = unsafe { libc::dladdr(address, found.as_mut_ptr()) } != 0;
    // SAFETY: all zeros is a valid value too.
    is_found.then(|| unsafe { found.assume_init() })
}

/// Does nothing: only Linux has these linker functions.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub extern "C" fn stay_loaded() {}
