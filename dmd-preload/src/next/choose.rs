//! Finds the allocator below, once, at the first block of the process.
//!
//! It is the first `malloc` after this library in the linker's search order. Only an allocator
//! whose library has all functions that are needed is called, since blocks of two must not mix;
//! otherwise glibc's is.
#![expect(unsafe_code, reason = "asks the dynamic linker, and calls what it finds")]

use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU8};

type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
type Calloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type Memalign = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);

/// The functions of an allocator other than glibc's.
#[derive(Clone, Copy)]
pub(super) struct Functions {
    pub(super) malloc: Malloc,
    pub(super) calloc: Calloc,
    pub(super) realloc: Realloc,
    pub(super) memalign: Memalign,
    pub(super) free: Free,
}

/// The allocator below.
#[derive(Clone, Copy)]
pub(super) enum Chosen {
    Glibc,
    Other(Functions),
    /// None yet: the linker allocates while it looks one up. It does without.
    Nothing,
}

/// The state of the choice: one of the constants below.
static STATE: AtomicU8 = AtomicU8::new(UNDECIDED);

const UNDECIDED: u8 = 0;
const LOOKING: u8 = 1;
const GLIBC: u8 = 2;
const OTHER: u8 = 3;

/// The functions by the order of [`NAMES`]. Those of glibc are null but for the last one.
static FOUND: [AtomicPtr<c_void>; NAMES.len()] =
    [const { AtomicPtr::new(ptr::null_mut()) }; NAMES.len()];

const NAMES: [&CStr; 6] =
    [c"malloc", c"calloc", c"realloc", c"memalign", c"free", c"malloc_usable_size"];

const SIZE_QUERY: usize = 5;

/// Returns the allocator below.
#[inline(always)]
pub(super) fn chosen() -> Chosen {
    // Relaxed: glibc's functions need nothing else.
    if STATE.load(Relaxed) == GLIBC { Chosen::Glibc } else { choose() }
}

#[cold]
#[inline(never)]
fn choose() -> Chosen {
    // Acquire, with the Release of `look_up`: the functions are written before the state.
    match STATE.load(Acquire) {
        GLIBC => Chosen::Glibc,
        OTHER => Chosen::Other(functions()),
        // The first block of a process is the main thread's, so nobody else can come here. glibc
        // before 2.34 may allocate in `dlsym` and takes a failure well.
        LOOKING => Chosen::Nothing,
        _ => {
            STATE.store(LOOKING, Relaxed);
            look_up();
            choose()
        }
    }
}

fn look_up() {
    let found = NAMES.map(next_of);
    let is_complete = found.iter().all(|function| !function.is_null());
    let glibc = super::__libc_malloc as *const c_void;
    let is_other = is_complete && found[0].cast_const() != glibc && is_one_library(&found);
    for (place, function) in FOUND.iter().zip(found) {
        place.store(function, Relaxed);
    }
    if !is_other {
        // The size query of the library with glibc's malloc, whatever comes before it.
        FOUND[SIZE_QUERY].store(of_glibc(NAMES[SIZE_QUERY]), Relaxed);
    }
    // Release, with the Acquire of `choose`.
    STATE.store(if is_other { OTHER } else { GLIBC }, Release);
}

/// Returns the function of this name after this library in the search order, or null.
fn next_of(name: &CStr) -> *mut c_void {
    // SAFETY: the name is a C string; the linker may be called by any code that it has relocated.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// Returns a function of the library with glibc's malloc, or null.
fn of_glibc(name: &CStr) -> *mut c_void {
    let function = next_of(name);
    let glibc = super::__libc_malloc as *const c_void;
    if library(function) == library(glibc.cast_mut()) {
        return function;
    }
    let how = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
    // SAFETY: the name is a C string, and nothing is loaded.
    let libc = unsafe { libc::dlopen(c"libc.so.6".as_ptr(), how) };
    if libc.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: a handle of the linker's, and a C string.
    unsafe { libc::dlsym(libc, name.as_ptr()) }
}

/// Returns whether all functions are of one library.
fn is_one_library(functions: &[*mut c_void]) -> bool {
    let mut libraries = functions.iter().map(|function| library(*function));
    let first = libraries.next().flatten();
    first.is_some() && libraries.all(|library| library == first)
}

/// Returns the start of the library that contains this address.
fn library(address: *mut c_void) -> Option<usize> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: a valid place for the answer.
    let is_found = unsafe { libc::dladdr(address, found.as_mut_ptr()) } != 0;
    // SAFETY: all zeros is a valid value too.
    is_found.then(|| unsafe { found.assume_init() }.dli_fbase.addr())
}

/// Returns the functions of the other allocator, which have been found.
fn functions() -> Functions {
    let [malloc, calloc, realloc, memalign, free, _] =
        FOUND.each_ref().map(|place| place.load(Relaxed));
    Functions {
        // SAFETY: the function of this name, found by the linker; every libc's has this type.
        malloc: unsafe { std::mem::transmute::<*mut c_void, Malloc>(malloc) },
        // SAFETY: as above.
        calloc: unsafe { std::mem::transmute::<*mut c_void, Calloc>(calloc) },
        // SAFETY: as above.
        realloc: unsafe { std::mem::transmute::<*mut c_void, Realloc>(realloc) },
        // SAFETY: as above.
        memalign: unsafe { std::mem::transmute::<*mut c_void, Memalign>(memalign) },
        // SAFETY: as above.
        free: unsafe { std::mem::transmute::<*mut c_void, Free>(free) },
    }
}

/// Returns the usable bytes of a block by the query of its allocator, or the C library's.
///
/// # Safety
///
/// `block` is a live block of the allocator below.
pub(super) unsafe fn usable_size(block: *const u8) -> usize {
    let function = FOUND[SIZE_QUERY].load(Relaxed);
    if function.is_null() {
        return 0;
    }
    // SAFETY: the function of this name, found by the linker; every libc's has this type.
    let query = unsafe {
        std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> usize>(function)
    };
    // SAFETY: the caller's contract.
    unsafe { query(block.cast_mut().cast()) }
}
