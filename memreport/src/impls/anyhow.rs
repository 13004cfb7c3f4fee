//! Measures errors of `anyhow`. *Lower bounds*, with the tracker alone.
//!
//! Counted are the block of each error in the chain that has a size, and the outermost message if
//! it is text. The blocks that other errors own are not counted.

use std::backtrace::Backtrace;

use anyhow::Error;

use crate::tracker::words::words_of;
use crate::{MallocSizeOf, Ops};

impl MallocSizeOf for Error {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        // The head before the error in its block: a table of functions, and perhaps a backtrace.
        let head = size_of::<(usize, Option<Backtrace>)>();
        let outermost: &(dyn std::error::Error + Send + Sync) = self.as_ref();
        let otherwise = (core::ptr::from_ref(outermost), head + size_of_val(outermost));
        ops.shared_blocks_by_words(words_of(self), otherwise, usize::MAX);
        for cause in self.chain().filter(|cause| size_of_val(*cause) > 0) {
            // One cause may lie within another.
            ops.shared_enclosing_block(cause, 0, usize::MAX);
            if let Some(error) = cause.downcast_ref::<std::io::Error>() {
                error.add_size_of_excluding_this(ops);
            }
        }
        self.backtrace().add_size_of_excluding_this(ops);
        if let Some(text) = self.downcast_ref::<String>() {
            text.add_size_of_excluding_this(ops);
        }
    }
}
