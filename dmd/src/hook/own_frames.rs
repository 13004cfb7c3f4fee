//! Learns which frames of a stack are the tracker's own, from allocations that it makes itself.
//!
//! Every way into the hooks is taken once under the plan in effect. The frames inside the function
//! that allocates are the tracker's and the compiler's allocator shims, in any build and with any
//! unwinder. Stacks that are interned from then on are without them.
#![expect(unsafe_code, reason = "calls the allocator as the compiler's shims do")]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, realloc};
use std::hint::black_box;

use memreport::__private::as_own;

use super::c_heap;
use crate::mem::sys;
use crate::stack::last_stacks;
use crate::stack::own_code;
use crate::stack::site::sample_next;
use crate::stack::thread::Thread;
use crate::stack::walk::last::MAX_FRAMES;

/// A way into the hooks.
#[derive(Clone, Copy)]
enum Entry {
    Alloc,
    AllocZeroed,
    Realloc,
    /// Takes a stack only if frees have stacks.
    Dealloc,
    /// `malloc`, of a library that passes it to the hooks.
    C,
    /// `calloc` of such a library.
    CZeroed,
    /// `realloc` of such a library.
    CRealloc,
    /// `free` of such a library.
    CFree,
}

const OF_RUST: [Entry; 4] = [Entry::Alloc, Entry::AllocZeroed, Entry::Realloc, Entry::Dealloc];
const OF_C: [Entry; 4] = [Entry::C, Entry::CZeroed, Entry::CRealloc, Entry::CFree];

/// Learns the tracker's frames under the plan in effect. Not to be called from a hook.
pub(crate) fn learn() {
    if own_code::is_whole_module() {
        return;
    }
    let library = c_heap::library();
    let of_c: &[Entry] = if library.is_some() { &OF_C } else { &[] };
    let set_learning = |is_learning| Thread::current(|thread| thread.is_learning.set(is_learning));
    // The blocks are the tracker's own: no figure contains them.
    as_own(|| {
        if let Some((low, high)) = library.and_then(|library| sys::module_of(library.code())) {
            own_code::learn_library(low, high);
        }
        set_learning(true);
        for &entry in OF_RUST.iter().chain(of_c) {
            black_box(learn_from as fn(Entry))(entry);
        }
        set_learning(false);
    });
}

/// Allocates a block, and learns the frames of its stack that are inside this function.
#[inline(never)]
fn learn_from(entry: Entry) {
    const LAYOUT: Layout = Layout::new::<[u64; 4]>();
    const HALF: Layout = Layout::new::<[u64; 2]>();
    sample_next();
    let block = match entry {
        // SAFETY: the size is not zero.
        Entry::Alloc => unsafe { alloc(LAYOUT) },
        // SAFETY: the size is not zero.
        Entry::AllocZeroed => unsafe { alloc_zeroed(LAYOUT) },
        Entry::Dealloc => {
            // SAFETY: the size is not zero.
            let block = unsafe { alloc(LAYOUT) };
            if !block.is_null() {
                // SAFETY: the block has this layout, and nothing refers to it.
                unsafe { dealloc(block, LAYOUT) };
            }
            std::ptr::null_mut()
        }
        Entry::Realloc => {
            // SAFETY: the size is not zero.
            let half = unsafe { alloc(HALF) };
            if half.is_null() {
                return;
            }
            sample_next();
            // SAFETY: the block was allocated with this layout, and the new size is not zero.
            let block = unsafe { realloc(half, HALF, LAYOUT.size()) };
            if block.is_null() {
                // SAFETY: the block lives on, with its layout.
                unsafe { dealloc(half, HALF) };
            }
            block
        }
        Entry::C | Entry::CZeroed | Entry::CRealloc | Entry::CFree => {
            return learn_from_c(entry);
        }
    };
    learn_last_stack();
    if !block.is_null() {
        // SAFETY: the block has this layout, and nothing refers to it.
        unsafe { dealloc(block, LAYOUT) };
    }
}

/// Allocates a block by a function of C, as [`learn_from`] does, which calls it.
#[inline(always)]
fn learn_from_c(entry: Entry) {
    const SIZE: usize = 32;
    let block = match entry {
        // SAFETY: a plain call.
        Entry::CZeroed => unsafe { libc::calloc(1, SIZE) },
        // SAFETY: as above.
        _ => unsafe { libc::malloc(SIZE) },
    };
    // The compiler leaves out pairs of such calls otherwise.
    let mut block = black_box(block);
    match entry {
        Entry::CRealloc => {
            sample_next();
            // SAFETY: null or the block above.
            let moved = unsafe { libc::realloc(block, 2 * SIZE) };
            learn_last_stack();
            block = if moved.is_null() { block } else { moved };
        }
        Entry::CFree => {}
        _ => learn_last_stack(),
    }
    // SAFETY: null or a live block, which nothing refers to.
    unsafe { libc::free(block) };
    if let Entry::CFree = entry {
        learn_last_stack();
    }
}

/// Learns the functions of this thread's last stack up to [`learn_from`]; none if it is not there.
fn learn_last_stack() {
    let outer = own_code::function_at(learn_from as *const () as usize);
    let Some(last) = last_stacks::known() else { return };
    let mut addresses = [0; MAX_FRAMES];
    let frames = last.copy_to(&mut addresses);
    let is_outer = |frame: &usize| outer.is_some() && own_code::function_of(*frame) == outer;
    if let Some(inner) = frames.iter().position(is_outer) {
        frames[..inner].iter().for_each(|frame| own_code::learn(*frame));
    }
}
