//! A plugin without DMD: it allocates on the system's allocator, and calls the program for more.
#![expect(unsafe_code, reason = "called by name, and at its loading")]

use std::cell::RefCell;
use std::{env, mem, ptr};

thread_local! {
    static KEPT: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

// SAFETY: the linker calls functions of this section when it loads the library.
#[unsafe(link_section = ".init_array")]
#[used]
static AT_LOAD: extern "C" fn() = at_load;

/// Calls the function of the program whose address is in `$CALL_AT_LOAD`.
extern "C" fn at_load() {
    let Some(address) = env::var("CALL_AT_LOAD").ok().and_then(|text| text.parse().ok()) else {
        return;
    };
    let function = ptr::with_exposed_provenance::<()>(address);
    // SAFETY: the program that loads the library has stored a function of this type.
    let function = unsafe { mem::transmute::<*const (), extern "C" fn()>(function) };
    function();
}

/// Keeps blocks of its own, calls the program to make one below this frame, and returns the number
/// kept.
// SAFETY: no other function of this name exists in a program of these tests.
#[unsafe(no_mangle)]
pub extern "C" fn work(blocks: usize, call_back: extern "C" fn()) -> usize {
    call_back();
    KEPT.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        kept.extend((0..blocks).map(|number| vec![1; 100 + number]));
        let count = kept.len();
        kept.clear();
        count
    })
    .unwrap_or(0)
}
