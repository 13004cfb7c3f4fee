//! Threads and what they wait at. *Lower bounds*, seen with the tracker alone: of a thread its name and the blocks that its handle leads
//! to; what it will return is not seen. Of a waker, the block that it leads to, as of a task.
//!
//! On Linux and Windows, what threads wait at owns nothing; where std makes it of pthreads', its blocks are not seen.

use std::sync::{Barrier, Condvar, Once};
use std::task::Waker;
use std::thread::{JoinHandle, ScopedJoinHandle, Thread};

use crate::allocator::words::words_of;
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

/// Whoever runs the task is mostly another owner of the same block.
impl MallocSizeOf for Waker {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.shared_enclosing_block(self.data(), 0, usize::MAX);
    }
}
