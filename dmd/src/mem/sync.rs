//! Atomics: the standard library's, or loom's where all interleavings of a model are tried.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence};

pub(crate) use std::sync::atomic::Ordering;

/// What a word says that only this thread stores into.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn load_own(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

/// Loom remembers only the last access to an atomic: a load here would hide those of other threads from the store that
/// follows. This one is not remembered.
#[cfg(loom)]
#[expect(unsafe_code, reason = "loom's load without synchronisation")]
pub(crate) fn load_own(word: &AtomicU64) -> u64 {
    // SAFETY: no other thread stores; loom fails the model if one does.
    unsafe { word.unsync_load() }
}

/// A function that is `const` but under loom, whose atomics are made at run time.
macro_rules! const_fn {
    ($(#[$meta:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty $body:block) => {
        $(#[$meta])*
        #[cfg(not(loom))]
        $visibility const fn $name($($argument: $type),*) -> $result $body

        $(#[$meta])*
        #[cfg(loom)]
        $visibility fn $name($($argument: $type),*) -> $result $body
    };
}

/// An array whose elements are all made by the same expression.
macro_rules! array_of {
    ($element:expr; $length:expr) => {{
        #[cfg(not(loom))]
        let array = [const { $element }; $length];
        #[cfg(loom)]
        let array: [_; $length] = std::array::from_fn(|_| $element);
        array
    }};
}

pub(crate) use {array_of, const_fn};
