//! Measures handles of threads, and types that threads wait at. *Lower bounds*, with the tracker
//! alone.
//!
//! Counted are a thread's name and the blocks that its handle points to, without the thread's
//! result; and the block that a waker points to, such as a task's. On Linux and Windows, types that
//! threads wait at own nothing. Where std uses pthreads, their blocks are not counted.

use std::sync::{Barrier, Condvar, Once};
use std::task::Waker;
use std::thread::{JoinHandle, ScopedJoinHandle, Thread};

use crate::tracker::words::words_of;
use crate::{MallocSizeOf, Ops};

owns_nothing!(Barrier, Condvar, Once);

/// The thread itself is another owner of the same blocks.
impl MallocSizeOf for Thread {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shared_blocks_by_words(words_of(self), (self, 0), usize::MAX);
        if let Some(name) = self.name() {
            ops.shared_enclosing_block(name, 0, usize::MAX);
        }
    }
}

macro_rules! handles {
    ($($handle:ty),*) => {$(
        /// The thread itself is another owner of the same blocks.
        impl<T> MallocSizeOf for $handle {
            fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
                ops.shared_blocks_by_words(words_of(self), (self, 0), usize::MAX);
                self.thread().add_size_of_excluding_this(ops);
            }
        }
    )*};
}

handles!(JoinHandle<T>, ScopedJoinHandle<'_, T>);

/// The executor of the task is mostly another owner of the same block.
impl MallocSizeOf for Waker {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shared_enclosing_block(self.data(), 0, usize::MAX);
    }
}
