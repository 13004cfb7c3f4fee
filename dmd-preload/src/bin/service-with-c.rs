//! The subject of tests that is a service: it declares DMD, serves its socket, and calls a library
//! of C, whose path is its argument, for each line of its input. The library leaks a block at each.
//! For the line `count` it prints what the tracker, glibc and the library count.
#![expect(unsafe_code, reason = "calls functions of C")]

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_void};
use std::io::{self, BufRead, Write};

dmd::global_allocator!();

type Fill = unsafe extern "C" fn(usize) -> usize;
type Count = unsafe extern "C" fn() -> usize;
type Leak = unsafe extern "C" fn(usize);

fn function(library: *mut c_void, name: &'static [u8]) -> *mut c_void {
    // SAFETY: a library that is loaded, and a C string.
    let found = unsafe { libc::dlsym(library, name.as_ptr().cast::<c_char>()) };
    assert!(!found.is_null(), "the library has all functions");
    found
}

/// Answers a request, and keeps its text.
#[inline(never)]
fn answer_request(leak: Leak, answered: &mut BTreeMap<String, usize>, request: &str) {
    *answered.entry(request.to_owned()).or_default() += 1;
    // SAFETY: the function takes any size.
    unsafe { leak(30_000) };
}

/// Prints the bytes and blocks of the tracker's counters, and the bytes of glibc's.
fn print_counts(out: &mut impl Write) -> io::Result<()> {
    let counters = memreport::heap_counters().unwrap_or_default();
    // SAFETY: a plain call.
    let glibc = unsafe { libc::mallinfo2() };
    let (bytes, blocks) = (counters.live_bytes(), counters.live_blocks());
    writeln!(out, "counted {bytes} {blocks} {}", glibc.uordblks + glibc.hblkhd)
}

fn main() -> io::Result<()> {
    let path = std::env::args().nth(1).and_then(|path| CString::new(path).ok()).unwrap_or_default();
    // SAFETY: a C string.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    assert!(!library.is_null(), "the library loads");
    // SAFETY: the library's function of this name has this type.
    let fill = unsafe { std::mem::transmute::<*mut c_void, Fill>(function(library, b"c_fill\0")) };
    // SAFETY: as above.
    let leak = unsafe { std::mem::transmute::<*mut c_void, Leak>(function(library, b"c_leak\0")) };
    // SAFETY: as above.
    let count =
        unsafe { std::mem::transmute::<*mut c_void, Count>(function(library, b"c_count\0")) };
    // SAFETY: the function takes any number.
    let c_bytes = unsafe { fill(1000) };
    // SAFETY: the function has no condition.
    let c_blocks = unsafe { count() };
    memreport::serve()?;
    let (mut answered, mut out) = (BTreeMap::new(), io::stdout());
    // Reused, so that nothing is allocated between a line and the next.
    let mut request = String::with_capacity(100);
    writeln!(out, "serves beside {c_bytes} {c_blocks}")?;
    while io::stdin().lock().read_line(&mut request)? > 0 {
        if request == "count\n" {
            print_counts(&mut out)?;
        } else {
            answer_request(leak, &mut answered, request.trim_end());
            writeln!(out, "{} answered", answered.len())?;
        }
        request.clear();
    }
    Ok(())
}
