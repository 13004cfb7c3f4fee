//! Has a program that runs already call this library's functions. `about-memory attach` loads the
//! library into it and calls `memreport_attach`.
#![expect(unsafe_code, reason = "is called from outside, by the C calling convention")]

use std::ffi::{CStr, CString, c_char};
use std::ptr;
use std::thread;
use std::time::Duration;

use dmd::__private::{Earlier, attach, spawn_own};

use crate::exports;
use crate::slots::{self, Replacement};

/// The interval of looks for modules that were loaded since.
const INTERVAL: Duration = Duration::from_secs(1);

/// Starts tracking, with these words of `$DMD`, in a program that has so many bytes in so many
/// blocks; 0 blocks if they were not counted. Returns null, or a message that is never freed.
///
/// # Safety
///
/// `words` is a C string.
#[unsafe(no_mangle)]
unsafe extern "C" fn memreport_attach(
    words: *const c_char,
    bytes: u64,
    blocks: u64,
) -> *const c_char {
    // SAFETY: the caller's contract.
    let words = unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned();
    let earlier = (blocks > 0).then_some(Earlier { bytes, blocks });
    // The caller's stack is borrowed, and small.
    let thread = thread::Builder::new().name("memreport-attach".into());
    let attached = match thread.spawn(move || attach(&words, earlier, redirect)) {
        Ok(attaching) => match attaching.join() {
            Ok(attached) => attached.map_err(|error| error.to_string()),
            Err(_) => Err("the library has panicked".to_owned()),
        },
        Err(error) => Err(format!("no thread could be started: {error}")),
    };
    let Err(message) = attached else { return ptr::null() };
    CString::new(message).map_or(c"the library has failed".as_ptr(), |text| text.into_raw())
}

/// Replaces the functions of C in all modules, now and when more are loaded.
fn redirect() -> Result<(), String> {
    let replacements = replacements()?;
    slots::replace(&replacements).map_err(|error| format!("/proc/self/mem: {error}"))?;
    let watching = spawn_own("memreport-load", move || watch_modules(&replacements));
    watching.map_err(|error| format!("no thread could be started: {error}"))
}

/// Replaces the functions in modules that were loaded since. The linker may write the addresses of
/// a new module after the first look, so each change is looked at twice.
fn watch_modules(replacements: &[Replacement]) {
    let mut seen = slots::loads();
    let mut is_new = true;
    loop {
        thread::sleep(INTERVAL);
        let loads = slots::loads();
        if is_new || loads != seen {
            // Nothing can be done about an error; the modules' blocks stay untracked.
            let _ = slots::replace(replacements);
        }
        is_new = loads != seen;
        seen = loads;
    }
}

/// Returns the functions to replace, with the addresses that programs call now.
fn replacements() -> Result<Vec<Replacement>, String> {
    let own = exports::addresses();
    let mut found = Vec::new();
    for (name, function) in own {
        if let Some(former) = slots::of_c_library(name)? {
            found.push(Replacement { name, former, function });
        }
    }
    Ok(found)
}
