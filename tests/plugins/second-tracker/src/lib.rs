//! A plugin with a DMD of its own, in a program that has one too, or has none.
#![expect(unsafe_code, reason = "called by name")]

dmd::global_allocator!();

/// Makes and frees blocks, and says whether this copy of the tracker is awake: 1 if it is, 0 if not, or not asked.
// SAFETY: nobody else defines a function of this name in a program of these tests.
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
