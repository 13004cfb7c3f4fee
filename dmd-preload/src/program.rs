//! The program's own tracker, if it declares DMD: this library then passes the calls of C's
//! functions to it, so that it has the blocks of C too.
#![expect(unsafe_code, reason = "an initialiser has a section of its own")]

use dmd::__private::{CHeapBelow, CHeapHooks, program_hooks};

use crate::next::Next;

/// The allocator below the program's hooks.
static BELOW: CHeapBelow = CHeapBelow::of::<Next>();

/// Returns the hooks of the program's own tracker, if it has one.
#[inline(always)]
pub(crate) fn hooks() -> Option<&'static CHeapHooks> {
    program_hooks(&BELOW)
}

/// Connects the library to the program before the program's own initialisers, if no block came
/// before.
extern "C" fn connect() {
    let _ = hooks();
}

#[used]
// SAFETY: the section holds addresses of functions that the dynamic linker calls.
#[unsafe(link_section = ".init_array")]
static CONNECT: extern "C" fn() = connect;
