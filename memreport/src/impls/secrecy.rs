//! Measures secrets of `secrecy` as boxes, without exposing them further. *Exact.*
#![expect(unsafe_code, reason = "vouches for the block of the secret")]

use core::alloc::Layout;

use secrecy::zeroize::Zeroize;
use secrecy::{ExposeSecret, SecretBox};

use crate::{MallocSizeOf, Ops};

impl<S: ?Sized + Zeroize + MallocSizeOf> MallocSizeOf for SecretBox<S> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let secret = self.expose_secret();
        // SAFETY: the secret is in a box.
        unsafe { ops.block(secret, Layout::for_value(secret)) };
        ops.add(secret);
    }
}
