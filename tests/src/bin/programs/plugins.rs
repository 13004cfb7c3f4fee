//! Libraries that are loaded while the program runs, and unloaded again: `argv[3]` is the file.
#![expect(unsafe_code, reason = "loads code and calls it")]

use std::cell::RefCell;
use std::ffi::{CString, c_void};
use std::mem;
use std::path::Path;

use crate::Failure;
use crate::planted::{plant, save};

thread_local! {
    static MADE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Called by the plugin, so that its frames are on the stack of a block.
extern "C" fn make_one() {
    let _ = MADE.try_with(|made| made.borrow_mut().extend(plant(1)));
}

/// Loaded, called and unloaded 20 times. The plugin's own blocks are not this tracker's.
pub(crate) fn plain(path: &Path) -> Result<(), Failure> {
    for _ in 0..20 {
        if loaded(|work| work(50, make_one))? != 50 {
            return Err("the plugin lost blocks".into());
        }
    }
    save(path)
}

/// The plugin's tracker must be asleep if this one is awake, and is awake if it is alone.
pub(crate) fn second_tracker(path: &Path) -> Result<(), Failure> {
    let is_awake = loaded(|work| work(50, make_one))?;
    if is_awake != 0 {
        return Err("the second tracker is awake too".into());
    }
    save(path)
}

type Work = extern "C" fn(usize, extern "C" fn()) -> usize;

fn loaded(call: impl FnOnce(Work) -> usize) -> Result<usize, Failure> {
    let file = CString::new(std::env::args().nth(3).ok_or("which plugin?")?)?;
    // SAFETY: a library of these tests, whose initialisers may run at any time.
    let library = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return Err(format!("{} cannot be loaded", file.to_string_lossy()).into());
    }
    // SAFETY: a library that is loaded.
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
