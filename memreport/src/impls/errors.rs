//! Measures errors. *Exact* for those that own nothing; *exact with the tracker* for those that
//! return an unused value. *Lower bounds* for boxed errors and backtraces.
//!
//! The box of an error is counted. The blocks that the error owns are counted only for an
//! `io::Error`. The resolved names of a backtrace are not counted.

use alloc::ffi::{IntoStringError, NulError};
use alloc::string::{FromUtf8Error, FromUtf16Error};
use core::error::Error;

use crate::tracker::words::words_of;
use crate::{MallocSizeOf, Ops};

owns_nothing!(core::fmt::Error, core::alloc::LayoutError, core::str::Utf8Error, FromUtf16Error);
owns_nothing!(core::num::ParseIntError, core::num::ParseFloatError, core::num::TryFromIntError);
owns_nothing!(core::str::ParseBoolError, core::char::ParseCharError, core::char::CharTryFromError);
owns_nothing!(
    core::net::AddrParseError,
    core::ffi::FromBytesWithNulError,
    core::array::TryFromSliceError
);
owns_nothing!(
    core::cell::BorrowError,
    core::cell::BorrowMutError,
    core::time::TryFromFloatSecsError
);

macro_rules! own_one_block {
    ($($error:ty),*) => {$(
        impl MallocSizeOf for $error {
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                ops.blocks_by_words(words_of(self), |offset, _| offset == 0, 0);
            }
        }
    )*};
}

own_one_block!(FromUtf8Error, NulError, IntoStringError);

macro_rules! of_any_kind {
    ($($error:ty),*) => {$(
        /// Adds nothing: the box owns the block, and the blocks that the error owns are unknown.
        impl MallocSizeOf for $error {
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                add_known(self, ops);
            }
        }
    )*};
}

of_any_kind!(dyn Error, dyn Error + Send, dyn Error + Send + Sync);

#[cfg(feature = "std")]
fn add_known<'a>(error: &'a (dyn Error + 'static), ops: &Ops<'a>) {
    if let Some(error) = error.downcast_ref::<std::io::Error>() {
        error.add_size_of_excluding_this(ops);
    }
}

#[cfg(not(feature = "std"))]
fn add_known<'a>(_error: &'a (dyn Error + 'static), _ops: &Ops<'a>) {}

#[cfg(feature = "std")]
mod of_std {
    use std::backtrace::{Backtrace, BacktraceStatus};
    use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};

    use super::{MallocSizeOf, Ops, words_of};

    owns_nothing!(RecvError, RecvTimeoutError, TryRecvError);
    owns_nothing!(std::time::SystemTimeError, std::thread::AccessError);

    impl<T: MallocSizeOf> MallocSizeOf for SendError<T> {
        #[inline]
        fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
            self.0.add_size_of_excluding_this(ops);
        }
    }

    impl<T: MallocSizeOf> MallocSizeOf for TrySendError<T> {
        #[inline]
        fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
            let (TrySendError::Full(message) | TrySendError::Disconnected(message)) = self;
            message.add_size_of_excluding_this(ops);
        }
    }

    impl MallocSizeOf for Backtrace {
        fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
            // A backtrace that was not captured may contain any words.
            if self.status() == BacktraceStatus::Captured {
                ops.blocks_by_words(words_of(self), |offset, _| offset == 0, 0);
            }
        }
    }
}
