//! Atomics of the standard library, or of loom in models.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{
    AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, fence,
};

pub(crate) use std::sync::atomic::Ordering;

/// Loads a word that only this thread stores to. Relaxed is enough: the thread sees its own stores.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn load_own(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

/// Loads a word that only this thread stores to. Loom records only the last access to an atomic, so
/// an ordinary load here would hide other threads' loads from the following store.
#[cfg(loom)]
#[expect(unsafe_code, reason = "loom's load without synchronisation")]
pub(crate) fn load_own(word: &AtomicU64) -> u64 {
    // SAFETY: no other thread stores to the word; loom fails the model if one does.
    unsafe { word.unsync_load() }
}

/// Defines a function that is `const`, except under loom, whose atomics are created at run time.
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

/// Makes an array by evaluating one expression for each element.
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
