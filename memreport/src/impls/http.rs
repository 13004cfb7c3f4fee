//! Measures requests, responses and their parts, of `http`. *Exact with the tracker*, except for
//! extensions and methods; without it a *formula*.
//!
//! The formula is the lengths of names, values and targets, and the capacity of maps. Without the
//! tracker, static text counts like any other. Extensions are a *lower bound*: only their table is
//! counted. Methods unknown to `http` are counted with the tracker alone.

use http::uri::{Authority, PathAndQuery};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version};

use crate::tracker::words::{Words, words_of};
use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

owns_nothing!(StatusCode, Version);

/// Implements the trait for types that begin with a slice of shared memory and lend it as text, or
/// are static.
macro_rules! handles {
    ($($ty:ty: $text:ident),* $(,)?) => {$(
        impl MallocSizeOf for $ty {
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                add_slice(ops, words_of(self), self.$text().as_ref());
            }
        }
    )*};
}

handles!(HeaderName: as_str, HeaderValue: as_bytes, Authority: as_str, PathAndQuery: as_str);

/// Counts the blocks of the slice that these words begin with, if the slice is this text.
fn add_slice(ops: &Ops<'_>, words: Words<'_>, text: &[u8]) {
    // Padding may follow.
    let words = words.take(size_of::<bytes::Bytes>() / size_of::<usize>());
    let start = text.as_ptr();
    let is_lent = words.clone().any(|word| word == start.addr());
    if is_lent && ops.is_in_block(start) != Some(false) {
        ops.shared_blocks_by_words(words, (start, text.len()), usize::MAX);
    }
}

/// Counts the text of a scheme other than the web's, and its box.
impl MallocSizeOf for Uri {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        if let Some(scheme) = self.scheme() {
            let text = scheme.as_str().as_ptr();
            if ops.is_in_block(text) == Some(true) {
                ops.shared_enclosing_block(text, 0, usize::MAX);
                let is_box =
                    |offset, requested| offset == 0 && requested == size_of::<bytes::Bytes>();
                ops.block_by_words(words_of(scheme), is_box);
            }
        }
        self.authority().into_iter().for_each(|part| part.add_size_of_excluding_this(ops));
        self.path_and_query().into_iter().for_each(|part| part.add_size_of_excluding_this(ops));
    }
}

/// A method unknown to `http` lies in the value or in a block of its own.
impl MallocSizeOf for Method {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let text = self.as_str().as_ptr();
        let is_outside =
            text.addr().wrapping_sub(core::ptr::from_ref(self).addr()) >= size_of::<Self>();
        if is_outside && ops.is_in_block(text) == Some(true) {
            ops.enclosing_block(text, 0);
        }
    }
}

/// A copy of a map's entry: the hash, and the first and last of further values of the name.
type Entry<T> = (u16, HeaderName, T, Option<[usize; 2]>);

/// A copy of a further value of a name, with the previous and the next one.
type Extra<T> = (T, Result<usize, usize>, Result<usize, usize>);

impl<T> MallocShallowSizeOf for HeaderMap<T> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        // An index for each slot, of which three in four may be used, and the entries.
        let entries = self.capacity();
        let indices = (entries + entries / 3).next_power_of_two() * size_of::<[u16; 2]>();
        let entry = size_of::<Entry<T>>();
        let bytes = if entries == 0 { 0 } else { indices.saturating_add(entries * entry) };
        let is_own = |offset, requested: usize| {
            let is_indices =
                requested.is_power_of_two() && requested <= size_of::<[u16; 2]>() << 16;
            let is_list = requested % entry == 0 || requested % size_of::<Extra<T>>() == 0;
            offset == 0 && (is_indices || is_list)
        };
        ops.blocks_by_words(words_of(self), is_own, bytes);
    }
}

impl<T: MallocSizeOf> MallocSizeOf for HeaderMap<T> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shallow(self);
        ops.add_with(self, |map, ops| {
            map.keys().for_each(|name| name.add_size_of_excluding_this(ops));
            map.values().for_each(|value| value.add_size_of_excluding_this(ops));
        });
    }
}

impl MallocSizeOf for Extensions {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.blocks_by_words(words_of(self), |_, _| true, 0);
    }
}
