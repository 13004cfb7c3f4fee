//! Checks for test suites: that types measure all that they own, and that a heap is accounted for.
//!
//! * [`assert_fully_reported!`](crate::assert_fully_reported) checks one type.
//! * [`Budget`] limits the allocations of a piece of code.
//! * [`Baseline`] checks that reporters cover the blocks that a test allocates.
//! * [`assert_classified`] checks that they cover the heap of the whole program.
//!
//! The test binary declares the allocator with `dmd::global_allocator!();` in its first file.
//! Without it every check fails, because a check that did not run must not pass.
//!
//! For maintainers, the reading order is: `tracked` (the precondition), `watch` (events of one
//! thread), `proof`, then `budget`,
//! and `classified` with `limits`, `baseline` and `explained`.

mod tracked;
mod watch;
mod own_lines;
mod proof;
mod budget;
mod classified;
mod limits;
mod baseline;
mod explained;

pub use baseline::Baseline;
pub use budget::{Budget, Exceeded, Spent, Threads};
pub use classified::{Unclassified, assert_classified, unclassified};
pub use limits::Limits;
pub use proof::{Defects, Proof, fully_reported};
#[doc(hidden)]
pub use tracked::keep_stacks;

/// Asserts that a value reports exactly the heap that it owns.
///
/// Measures the value, drops it, and compares the reported blocks with the freed blocks.
///
/// ```
/// # use memreport::{MallocSizeOf, Ops};
/// dmd::global_allocator!();
///
/// struct Page { text: String, links: Vec<String> }
///
/// impl MallocSizeOf for Page {
///     fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
///         ops.add(&self.text);
///         ops.add(&self.links);
///     }
/// }
///
/// # fn main() {
/// # if std::env::var_os("DMD").is_none() { return; } // A doc test is not a test binary.
/// dmd::assert_fully_reported!(Page { text: "heap".repeat(9), links: vec![String::from("a")] });
/// # }
/// ```
///
/// If another owner keeps some of the blocks alive, name it and the reason:
/// `assert_fully_reported!(page, shared_with(&cache, "the cache lends its pictures"))`.
///
/// # Panics
///
/// If a block is missed, counted twice, not owned, or counted with another size; the message names
/// the field. Also if the binary does not declare DMD's allocator.
#[macro_export]
macro_rules! assert_fully_reported {
    ($value:expr $(, shared_with($owner:expr, $reason:expr))* $(,)?) => {{
        // Before the value exists, so that the message has the lines that allocated its blocks.
        $crate::testing::keep_stacks();
        if let ::core::result::Result::Err(defects) =
            $crate::testing::Proof::of($value)$(.shared_with($owner, $reason))*.check()
        {
            ::core::panic!("{}", defects);
        }
    }};
}
