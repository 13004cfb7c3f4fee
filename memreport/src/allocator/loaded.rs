//! Keeps the library that contains this code loaded, because ending threads call back into it.
#![cfg_attr(
    all(any(target_os = "linux", target_os = "macos"), not(miri)),
    expect(unsafe_code, reason = "asks the dynamic linker")
)]

/// Tells the dynamic linker never to unload this code. Runs when the code is loaded.
///
/// A program is never unloaded. A plugin that declares an allocator may be, while threads that have
/// allocated with it still run.
#[cfg(all(any(target_os = "linux", target_os = "macos"), not(miri)))]
pub extern "C" fn stay_loaded() {
    use core::ffi::c_void;

    let Some(own) = module(stay_loaded as *const c_void) else { return };
    if program().and_then(module).is_some_and(|program| program.dli_fbase == own.dli_fbase) {
        return;
    }
    let how = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: the name comes from the linker itself; nothing is loaded or run.
    unsafe { libc::dlopen(own.dli_fname, how) };
}

/// Returns an address in the program's own file: its program headers.
#[cfg(all(target_os = "linux", not(miri)))]
fn program() -> Option<*const core::ffi::c_void> {
    // SAFETY: a plain call.
    let headers = unsafe { libc::getauxval(libc::AT_PHDR) };
    usize::try_from(headers).ok().map(core::ptr::without_provenance)
}

/// Returns an address in the program's own file: its header. Compiled, not run.
#[cfg(all(target_os = "macos", not(miri)))]
fn program() -> Option<*const core::ffi::c_void> {
    unsafe extern "C" {
        safe fn _dyld_get_image_header(index: u32) -> *const core::ffi::c_void;
    }
    Some(_dyld_get_image_header(0))
}

/// Returns the dynamic linker's description of the file that contains this address.
#[cfg(all(any(target_os = "linux", target_os = "macos"), not(miri)))]
fn module(address: *const core::ffi::c_void) -> Option<libc::Dl_info> {
    let mut found = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: a valid location for the answer.
    let is_found = unsafe { libc::dladdr(address, found.as_mut_ptr()) } != 0;
    // SAFETY: all zeros is a valid value too.
    is_found.then(|| unsafe { found.assume_init() })
}

/// Does nothing: other systems have no such linker functions.
#[cfg(not(all(any(target_os = "linux", target_os = "macos"), not(miri))))]
pub extern "C" fn stay_loaded() {}
