//! A library that is loaded at run time.
#![expect(unsafe_code, reason = "loads code and calls it")]

use std::ffi::{CString, c_void};
use std::mem;

use crate::Failure;

/// The function that every plugin of these tests exports.
pub(crate) type Work = extern "C" fn(usize, extern "C" fn()) -> usize;

/// Loads a plugin, calls it, and unloads it.
pub(crate) fn loaded(file: &str, call: impl FnOnce(Work) -> usize) -> Result<usize, Failure> {
    let name = CString::new(file)?;
    // SAFETY: a library of these tests, whose initialisers may run at any time.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return Err(format!("{file} cannot be loaded").into());
    }
    // SAFETY: a loaded library.
    let work = unsafe { libc::dlsym(library, c"work".as_ptr()) };
    if work.is_null() {
        return Err("it has no function `work`".into());
    }
    // SAFETY: plugins of these tests have it with this type.
    let work = unsafe { mem::transmute::<*mut c_void, Work>(work) };
    let answer = call(work);
    // SAFETY: loaded above; nothing of it is used any more.
    unsafe { libc::dlclose(library) };
    Ok(answer)
}
