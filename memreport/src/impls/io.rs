//! Measures buffered readers and writers, and I/O errors.
//!
//! A `Cursor` and a `BufWriter` are *exact*. A `BufReader` and a `LineWriter` are *exact with the
//! tracker*; without it their capacity, or std's own for lines. An `Error` is a *lower bound*: its
//! cause's blocks are not counted.
#![expect(unsafe_code, reason = "vouches for the buffer of a writer")]

use std::io::{
    BufReader, BufWriter, Chain, Cursor, Empty, Error, LineWriter, Repeat, Sink, Stderr, Stdin,
    Stdout, Take, Write,
};

use super::sequence::elements;
use crate::tracker::words::{words_of, words_outside};
use crate::{MallocSizeOf, Ops};

owns_nothing!(Empty, Repeat, Sink, Stdin, Stdout, Stderr);

impl<T: MallocSizeOf> MallocSizeOf for Cursor<T> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.get_ref().add_size_of_excluding_this(ops);
    }
}

impl<W: Write + MallocSizeOf> MallocSizeOf for BufWriter<W> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        // SAFETY: the buffer is a vector of that capacity, borrowed as a slice.
        unsafe { elements(ops, self.buffer().as_ptr(), self.capacity()) };
        self.get_ref().add_size_of_excluding_this(ops);
    }
}

impl<R: MallocSizeOf> MallocSizeOf for BufReader<R> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let capacity = self.capacity();
        let is_buffer = |offset, requested| offset == 0 && requested == capacity;
        if !ops.block_by_words(words_of(self), is_buffer) {
            ops.computed(capacity);
        }
        self.get_ref().add_size_of_excluding_this(ops);
    }
}

/// The size in bytes of std's buffer for lines.
const LINE_BUFFER: usize = 1024;

impl<W: Write + MallocSizeOf> MallocSizeOf for LineWriter<W> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let words = words_outside(self, self.get_ref());
        // The capacity is among the words as well.
        let is_buffer =
            |offset, requested| offset == 0 && words.clone().any(|word| word == requested);
        ops.blocks_by_words(words.clone(), is_buffer, LINE_BUFFER);
        self.get_ref().add_size_of_excluding_this(ops);
    }
}

impl<R: MallocSizeOf> MallocSizeOf for Take<R> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.get_ref().add_size_of_excluding_this(ops);
    }
}

impl<A: MallocSizeOf, B: MallocSizeOf> MallocSizeOf for Chain<A, B> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let (first, second) = self.get_ref();
        first.add_size_of_excluding_this(ops);
        second.add_size_of_excluding_this(ops);
    }
}

/// An error with a cause owns the cause in a box, and a second box with that and the kind.
impl MallocSizeOf for Error {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        if let Some(cause) = self.get_ref() {
            ops.blocks_by_words(words_of(self), |_, _| true, size_of::<[usize; 3]>());
            if size_of_val(cause) > 0 {
                ops.enclosing_block(cause, size_of_val(cause));
            }
        }
    }
}
