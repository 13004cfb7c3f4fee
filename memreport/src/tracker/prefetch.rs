//! The processor's instruction that prefetches memory: a hint, which reads nothing.
#![cfg_attr(
    all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")),
    expect(unsafe_code, reason = "fetches memory by an instruction of the processor")
)]

#[cfg(all(test, feature = "std"))]
std::thread_local! {
    /// The addresses that this thread has prefetched.
    pub(crate) static FETCHED: core::cell::RefCell<Vec<usize>> =
        const { core::cell::RefCell::new(Vec::new()) };
}

/// Prefetches the cache line at this address, which may be any address.
#[inline]
pub fn fetch(address: *const u8) {
    #[cfg(all(test, feature = "std"))]
    FETCHED.with_borrow_mut(|fetched| fetched.push(address.addr()));
    #[cfg(all(not(miri), target_arch = "x86_64"))]
    // SAFETY: a prefetch reads nothing, and does nothing for an unmapped address.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(all(not(miri), target_arch = "aarch64"))]
    // SAFETY: a prefetch, as on the other processor.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{0}]", in(reg) address, options(readonly, nostack, preserves_flags));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}
