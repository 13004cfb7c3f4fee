//! Libraries that are loaded, called and unloaded in turn: the second takes the address of the
//! first.
#![expect(unsafe_code, reason = "loads libraries")]

use std::ffi::{CStr, CString};
use std::io::Write;

use memreport_workload::Numbers;

use crate::compare::Kind;
use crate::paths;

type CallBack = extern "C" fn(u32, extern "C" fn(usize), usize);

/// The number of loads of each library.
const TURNS: usize = 20;

/// Starts the tracker while a library is loaded, takes stacks through it, and unloads it.
pub(crate) fn start_while_loaded(
    path: &str,
    options: dmd::Options,
) -> Result<(), Box<dyn std::error::Error>> {
    while_loaded(&CString::new(path)?, |call_back| {
        let started = dmd::start(options);
        call_back(3, called_back, 0);
        started
    })??;
    Ok(())
}

/// Calls both in turn, and returns how often one lay at the other's address.
pub(crate) fn check(
    first: &str,
    second: &str,
    out: &mut dyn Write,
) -> Result<(), Box<dyn std::error::Error>> {
    let paths = [CString::new(first)?, CString::new(second)?];
    let mut before = 0;
    let mut same = 0;
    for turn in 0..2 * TURNS {
        let address = call(&paths[turn % 2])?;
        same += usize::from(address == before);
        before = address;
    }
    writeln!(out, "reloaded in the same place: {same} of {} times", 2 * TURNS - 1)?;
    Ok(())
}

extern "C" fn called_back(seed: usize) {
    let mut numbers = Numbers::new(seed as u64);
    for _ in 0..10 {
        paths::go(&mut numbers, 3, Kind::InPlugin);
    }
}

/// Loads the library, calls it, unloads it, and returns its function's address.
fn call(path: &CStr) -> Result<usize, String> {
    while_loaded(path, |call_back| {
        for seed in 0..3 {
            call_back(3, called_back, seed);
        }
        call_back as usize
    })
}

/// Loads the library, passes its function to `work`, and unloads it.
fn while_loaded<T>(path: &CStr, work: impl FnOnce(CallBack) -> T) -> Result<T, String> {
    // SAFETY: a library of ours, whose initialisers do nothing.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    if library.is_null() {
        // SAFETY: `dlerror` has no preconditions.
        let message = unsafe { libc::dlerror() };
        // SAFETY: the call before has failed, so there is a message.
        let message = unsafe { CStr::from_ptr(message) };
        return Err(message.to_string_lossy().into_owned());
    }
    // SAFETY: an open library.
    let function = unsafe { libc::dlsym(library, c"call_back".as_ptr()) };
    if function.is_null() {
        return Err("it has no call_back".to_owned());
    }
    // SAFETY: the function has this type.
    let call_back = unsafe { std::mem::transmute::<*mut libc::c_void, CallBack>(function) };
    let result = work(call_back);
    // SAFETY: nothing of it is used any more.
    unsafe { libc::dlclose(library) };
    Ok(result)
}
