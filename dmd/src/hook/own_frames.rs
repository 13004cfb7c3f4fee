//! Learns which frames of a stack are the tracker's own, from allocations that it makes itself.
//!
//! Every way into the hooks is taken once under the plan in effect. The frames inside the function
//! that allocates are the tracker's and the compiler's allocator shims, in any build and with any
//! unwinder. Stacks that are interned from then on are without them.
#![expect(unsafe_code, reason = "calls the allocator as the compiler's shims do")]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, realloc};
use std::hint::black_box;

use memreport::__private::as_own;

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
}

/// Learns the tracker's frames under the plan in effect. Not to be called from a hook.
pub(crate) fn learn() {
    if own_code::is_whole_module() {
        return;
    }
    let set_learning = |is_learning| Thread::current(|thread| thread.is_learning.set(is_learning));
    // The blocks are the tracker's own: no figure contains them.
    as_own(|| {
        set_learning(true);
        for entry in [Entry::Alloc, Entry::AllocZeroed, Entry::Realloc, Entry::Dealloc] {
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
    };
    learn_last_stack();
    if !block.is_null() {
        // SAFETY: the block has this layout, and nothing refers to it.
        unsafe { dealloc(block, LAYOUT) };
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
