//! A plugin with a DMD of its own, for programs with and without one.
#![expect(unsafe_code, reason = "called by name")]

dmd::global_allocator!();

/// Makes and frees blocks. Returns 1 if this copy of the tracker is awake, and 0 if not.
// SAFETY: no other function of this name exists in a program of these tests.
#[unsafe(no_mangle)]
pub extern "C" fn work(blocks: usize, call_back: extern "C" fn()) -> usize {
    call_back();
    let kept: Vec<Vec<u8>> = (0..blocks).map(|number| vec![1; 100 + number]).collect();
    if kept.is_empty() {
        drop(std::hint::black_box(vec![1_u8; 100]));
        return 0;
    }
    let snapshot = memreport::snapshot();
    drop(kept);
    usize::from(dmd::Dump::of(&snapshot).is_some())
}
