//! Proofs for test suites: that a type measures all it owns, and that a program's heap is accounted for.
//!
//! The test binary declares the allocator: `dmd::global_allocator!();` in its first file. Without it every proof fails, and
//! says so: a proof that did not run is not a pass.

mod watch;
mod proof;
mod blame;
mod compare;
mod budget;
mod classified;

pub use budget::{Budget, Exceeded, Spent, Threads};
pub use classified::{Unclassified, assert_classified, unclassified};
pub use proof::{Defects, Proof, fully_reported};

/// Fails unless the value reports exactly the heap that it owns: drops it, and looks at what was freed.
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
/// # if std::env::var_os("DMD").is_none() { return; } // A doc test is not a test binary: nobody wakes DMD.
/// dmd::assert_fully_reported!(Page { text: "heap".repeat(9), links: vec![String::from("a")] });
/// # }
/// ```
///
/// Blocks that an owner elsewhere keeps alive are named with it, and with the reason:
/// `assert_fully_reported!(page, shared_with(&cache, "the cache lends its pictures"))`.
///
/// # Panics
///
/// When a block is missed, counted twice, not the value's own, or of another size than was reported; the message names
/// the field. When the binary does not declare DMD's allocator.
#[macro_export]
macro_rules! assert_fully_reported {
    ($value:expr $(, shared_with($owner:expr, $reason:expr))* $(,)?) => {
        if let ::core::result::Result::Err(defects) =
            $crate::testing::Proof::of($value)$(.shared_with($owner, $reason))*.check()
        {
            ::core::panic!("{}", defects);
        }
    };
}
