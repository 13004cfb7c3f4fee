//! Requests, responses and their parts, of `http`. *Exact with the tracker*, but for extensions and methods; without it a *formula*:
//! the lengths of names, values and targets, and of maps what their capacity takes.
//!
//! Text that is static counts without the tracker as if it were not. Extensions are a *lower bound*: only their own table is
//! seen, and the values in it are not. Methods that http does not know are seen with the tracker alone.

use http::uri::{Authority, PathAndQuery};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version};

use crate::allocator::words::{Words, words_of};
use crate::{MallocShallowSizeOf, MallocSizeOf, Ops};

owns_nothing!(StatusCode, Version);

/// Each begins with a slice of shared memory, and then lends it as text; or it is static, and what it begins with is not.
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

/// Counts the blocks of the slice that these words begin with, if it lends this text.
fn add_slice(ops: &Ops<'_>, words: Words<'_>, text: &[u8]) {
    // Behind it may be padding.
    let words = words.take(size_of::<bytes::Bytes>() / size_of::<usize>());
    let start = text.as_ptr();
    let is_lent = words.clone().any(|word| word == start.addr());
    if is_lent && ops.is_in_block(start) != Some(false) {
        ops.shared_blocks_by_words(words, (start, text.len()), usize::MAX);
    }
}

/// Of a scheme that is not of the web, the text is seen, and the box that holds it.
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

/// One that http does not know is in the value, or in a block of its own.
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

/// As a map's entry: its hash, and where further values of the name begin and end.
type Entry<T> = (u16, HeaderName, T, Option<[usize; 2]>);

/// As a further value of a name, with the one before and the one behind.
type Extra<T> = (T, Result<usize, usize>, Result<usize, usize>);

impl<T> MallocShallowSizeOf for HeaderMap<T> {
    fn add_shallow_size_of<'a>(&'a self, ops: &Ops<'a>) {
        // An index for each place, of which three in four may be taken, and the entries.
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
