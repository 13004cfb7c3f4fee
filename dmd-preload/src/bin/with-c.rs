//! The subject of tests that declares DMD and uses a library of C, whose path is its argument. It
//! prints the numbers of the tracker, of glibc, and of the library, which must be equal.
#![expect(unsafe_code, reason = "calls functions of C")]

use std::ffi::{CString, c_char, c_void};
use std::sync::Mutex;

dmd::global_allocator!();

static KEPT: Mutex<Vec<String>> = Mutex::new(Vec::new());

memreport::reporter!("explicit/with-c/kept", KEPT, "Texts of Rust.");

/// The heap at one moment, by the tracker's counters and by glibc.
#[derive(Clone, Copy)]
struct Moment {
    bytes: u64,
    blocks: u64,
    glibc: usize,
}

impl Moment {
    fn now() -> Self {
        let counters = memreport::heap_counters().unwrap_or_default();
        // SAFETY: a plain call.
        let glibc = unsafe { libc::mallinfo2() };
        Moment {
            bytes: counters.live_bytes(),
            blocks: counters.live_blocks(),
            glibc: glibc.uordblks + glibc.hblkhd,
        }
    }
}

type Fill = unsafe extern "C" fn(usize) -> usize;
type Count = unsafe extern "C" fn() -> usize;
type Leak = unsafe extern "C" fn(usize);
type Clear = unsafe extern "C" fn();

fn function(library: *mut c_void, name: &'static [u8]) -> *mut c_void {
    // SAFETY: a library that is loaded, and a C string.
    let found = unsafe { libc::dlsym(library, name.as_ptr().cast::<c_char>()) };
    assert!(!found.is_null(), "the library has all functions");
    found
}

#[inline(never)]
fn leak_from_rust(leak: Leak) {
    // SAFETY: the function takes any size.
    unsafe { leak(1_234_567) };
}

#[expect(clippy::print_stdout, reason = "the test reads it")]
fn main() {
    let path = std::env::args().nth(1).and_then(|path| CString::new(path).ok()).unwrap_or_default();
    // SAFETY: a C string.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    assert!(!library.is_null(), "the library loads");
    // SAFETY: the library's function of this name has this type.
    let fill = unsafe { std::mem::transmute::<*mut c_void, Fill>(function(library, b"c_fill\0")) };
    // SAFETY: as above.
    let count =
        unsafe { std::mem::transmute::<*mut c_void, Count>(function(library, b"c_count\0")) };
    // SAFETY: as above.
    let leak = unsafe { std::mem::transmute::<*mut c_void, Leak>(function(library, b"c_leak\0")) };
    // SAFETY: as above.
    let clear =
        unsafe { std::mem::transmute::<*mut c_void, Clear>(function(library, b"c_clear\0")) };

    let first = Moment::now();
    // SAFETY: the function takes any number.
    unsafe { fill(1000) };
    // SAFETY: nothing refers to the blocks.
    unsafe { clear() };
    let cleared = Moment::now();
    println!(
        "freed {} {}",
        cleared.bytes.abs_diff(first.bytes),
        cleared.blocks.abs_diff(first.blocks)
    );
    let before = Moment::now();
    // SAFETY: the functions take any number.
    let c_bytes = unsafe { fill(1000) };
    // SAFETY: as above.
    let c_blocks = unsafe { count() };
    let after_c = Moment::now();
    if let Ok(mut kept) = KEPT.lock() {
        kept.extend((0..1000).map(|number| format!("text {number}")));
    }
    let after_rust = Moment::now();
    println!("c-library {c_bytes} {c_blocks}");
    println!("tracker {} {}", after_c.bytes - before.bytes, after_c.blocks - before.blocks);
    println!("glibc {}", after_c.glibc - before.glibc);
    let rust_blocks = after_rust.blocks - after_c.blocks;
    println!(
        "rust {} {}",
        after_rust.bytes - after_c.bytes + 8 * rust_blocks,
        after_rust.glibc - after_c.glibc
    );
    let snapshot = memreport::snapshot();
    if let Some(dump) = dmd::Dump::of(&snapshot) {
        let of_c: i64 = snapshot
            .reports
            .iter()
            .filter(|report| report.path.starts_with("explicit/c-heap/"))
            .map(|report| report.amount)
            .sum();
        let heap = snapshot.reports.iter().find(|report| report.path == "heap-allocated");
        println!("reported {of_c} of {}", heap.map_or(0, |report| report.amount));
        println!("unclassified {}", dump.summary().unclassified());
    }
    leak_from_rust(leak);
}
