//! A program without std, on the C library's start and memory. Its exit code is 0 if it measures
//! its values right.
//!
//! It has a panic handler of its own. If std were linked, there would be two, and the build would
//! fail.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::alloc::{GlobalAlloc, Layout};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;

use memreport::{MallocSizeOf, measure};

unsafe extern "C" {
    fn malloc(bytes: usize) -> *mut u8;
    fn free(block: *mut u8);
    fn abort() -> !;
}

struct Malloc;

// SAFETY: blocks of `malloc` are aligned to 16 bytes, and larger alignments are refused.
unsafe impl GlobalAlloc for Malloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: `malloc` has no preconditions.
        if layout.align() > 16 { core::ptr::null_mut() } else { unsafe { malloc(layout.size()) } }
    }

    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: by the caller's contract, the block comes from this allocator, hence from
        // `malloc`.
        unsafe { free(block) };
    }
}

#[global_allocator]
static ALLOCATOR: Malloc = Malloc;

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: `abort` has no preconditions.
    unsafe { abort() }
}

#[derive(MallocSizeOf)]
#[malloc_size_of(sizes = PageSizes)]
struct Page {
    #[malloc_size_of(part)]
    text: String,
    links: Vec<Link>,
    numbers: BTreeMap<u32, Box<u64>>,
    owner: Rc<RefCell<String>>,
    next: Option<Box<Page>>,
    #[malloc_size_of(ignore = "it is borrowed")]
    title: &'static str,
}

#[derive(MallocSizeOf)]
enum Link {
    Inside(u32),
    Outside { address: String },
}

fn page(next: Option<Box<Page>>, owner: &Rc<RefCell<String>>) -> Page {
    let outside = Link::Outside { address: String::from("elsewhere") };
    Page {
        text: String::from("a text"),
        links: Vec::from([Link::Inside(1), outside]),
        numbers: BTreeMap::from([(1, Box::new(2))]),
        owner: Rc::clone(owner),
        next,
        title: "Page",
    }
}

/// Returns whether two pages with a common owner own as many bytes as their layouts require.
fn is_right() -> bool {
    let owner = Rc::new(RefCell::new(String::from("owner")));
    let pages = page(Some(Box::new(page(None, &owner))), &owner);
    let measured = measure(&pages);
    let shared = size_of::<[usize; 2]>() + size_of::<RefCell<String>>() + 5;
    let leaf = measured.computed / 2;
    let each = 6 + 2 * size_of::<Link>() + 9 + leaf + size_of::<u64>();
    let sizes = memreport::sizes_of(&pages);
    measured.bytes == 2 * each + size_of::<Page>() + shared
        && measured.blocks == 11
        && measured.computed > 2 * 11 * (size_of::<u32>() + size_of::<Box<u64>>())
        && sizes.text == 2 * 6
        && sizes.total() == measured.bytes
}

#[unsafe(no_mangle)]
extern "C" fn main() -> i32 {
    i32::from(!is_right())
}
