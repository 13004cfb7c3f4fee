//! Measures lazily initialized values. *Exact* from Rust 1.94 on; before, they are *busy*.
//!
//! Rust 1.94 first exposes whether a value is initialized. Captures of an initializer that has not
//! run are not counted: a *lower bound*.

use core::cell::LazyCell;
#[cfg(feature = "std")]
use std::sync::LazyLock;

use crate::{MallocSizeOf, Ops};

/// A trait whose function has the name of std's, which has precedence where it is stable.
#[cfg_attr(not(test), expect(dead_code, reason = "stands in for std's, where that is not stable"))]
trait WithoutState {
    fn get(_: &Self) -> Unknown {
        Unknown
    }
}

/// The result on versions that do not expose whether the value is initialized.
struct Unknown;

/// The result of a function `get`.
trait State<'a> {
    fn add(self, ops: &Ops<'a>);
}

impl<'a, T: MallocSizeOf> State<'a> for Option<&'a T> {
    #[inline]
    fn add(self, ops: &Ops<'a>) {
        self.into_iter().for_each(|value| value.add_size_of_excluding_this(ops));
    }
}

impl State<'_> for Unknown {
    fn add(self, ops: &Ops<'_>) {
        ops.busy();
    }
}

macro_rules! lazy {
    ($(#[$attribute:meta])* $lazy:ident) => {
        impl<T, F> WithoutState for $lazy<T, F> {}

        impl<T: MallocSizeOf, F> MallocSizeOf for $lazy<T, F> {
            $(#[$attribute])*
            #[inline]
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                $lazy::get(self).add(ops);
            }
        }
    };
}

lazy! {
    #[expect(clippy::incompatible_msrv, reason = "ours is called where std's is not stable")]
    LazyCell
}
#[cfg(feature = "std")]
lazy! {
    #[expect(clippy::incompatible_msrv, reason = "ours is called where std's is not stable")]
    LazyLock
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lazy value that does not expose its state.
    struct Old<T, F>(T, F);

    lazy!(Old);

    #[test]
    fn an_unknown_state_is_busy() {
        let measured = crate::measure(&Old(String::from("heap"), ()));
        assert_eq!((measured.bytes, measured.busy), (0, 1));
    }
}
