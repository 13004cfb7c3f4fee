//! A Rust program with libraries in C and C++ that report their memory by `memreport.h`.
//!
//! Prints the reports of the libraries. `about-memory run --c-heap -- c-library` also tracks their
//! blocks: reporters are then checked block by block, and what they forget is below `c-heap`.
#![expect(unsafe_code, reason = "calls functions of C")]

use std::ffi::c_void;

dmd::global_allocator!();

memreport::counted_malloc! {
    /// The functions that the library of images allocates its index with.
    mod index_heap: "explicit/images/index", "The index of images, allocated by functions that the program passes in.";
}

#[repr(C)]
struct Allocator {
    allocate: unsafe extern "C" fn(usize) -> *mut c_void,
    release: unsafe extern "C" fn(*mut c_void),
}

unsafe extern "C" {
    fn images_decode(count: usize, bytes: usize) -> usize;
    fn images_index(allocator: Allocator, bytes: usize);
    fn images_drop_index();
    fn images_clear();
    fn names_fill(count: usize);
    fn names_clear();
}

#[expect(clippy::print_stdout, reason = "it is what the program is for")]
fn main() {
    let allocator = Allocator { allocate: index_heap::malloc, release: index_heap::free };
    // SAFETY: the libraries' functions, with arguments of their types, on one thread.
    let requested = unsafe { images_decode(10, 100_000) };
    // SAFETY: as above.
    unsafe { images_index(allocator, 50_000) };
    // SAFETY: as above.
    unsafe { names_fill(1000) };

    println!("requested {requested}");
    let snapshot = memreport::snapshot();
    for report in &snapshot.reports {
        let is_ours = ["explicit/images/", "explicit/names", "images"];
        if is_ours.iter().any(|path| report.path.starts_with(path)) {
            println!("{} {:?} {}", report.path, report.kind, report.amount);
        }
    }
    for note in snapshot.notes.iter().filter(|note| note.contains("refused")) {
        println!("note: {note}");
    }
    // For `about-memory run`, which shows the last state that was requested.
    if let Some(path) = std::env::args_os().nth(1) {
        snapshot.save(std::path::Path::new(&path)).expect("the file can be written");
    }
    // SAFETY: as above.
    unsafe { names_clear() };
    // SAFETY: as above.
    unsafe { images_drop_index() };
    // SAFETY: as above.
    unsafe { images_clear() };
    let left = memreport::snapshot();
    println!(
        "reporters of C at the end: {}",
        left.reports.iter().filter(|report| report.path.starts_with("explicit/names")).count()
    );
}
