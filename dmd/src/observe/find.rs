//! The allocation of a value that is at hand.

use std::fmt;

use super::allocation::{Allocation, Clock};
use crate::mem::sys;
use crate::mem::sys::StackBounds;
use crate::sample::plan;
use crate::table::blocks::LiveBlock;
use crate::table::packed_block::Tombstone;
use crate::table::{BLOCKS, granule};

/// Where the block was allocated that this value lies in: the value itself, not what it owns. Of a vector's elements ask for
/// one of them, of a box for what is in it.
///
/// ```
/// dmd::global_allocator!();
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let observer = dmd::sites::Observer::start()?;
/// let page = Box::new([0_u8; 4096]);
/// assert_eq!(dmd::allocation_site(&*page)?.requested(), 4096);
/// assert_eq!(dmd::allocation_site(&page), Err(dmd::sites::NoSite::NotOnHeap));
/// # drop(observer);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Says why nothing is known of it.
pub fn allocation_site<T: ?Sized>(value: &T) -> Result<Allocation, NoSite> {
    allocation_site_of(std::ptr::from_ref(value))
}

/// The same of an address, into any part of a block. Nothing is read there, so that it need not be valid.
///
/// # Errors
///
/// Says why nothing is known of it.
pub fn allocation_site_of<T: ?Sized>(address: *const T) -> Result<Allocation, NoSite> {
    let address = address.addr();
    let granule = granule().ok_or(NoSite::NotDeclared)?;
    if !plan::plan().is_awake() {
        return Err(NoSite::Asleep);
    }
    if let Some(LiveBlock { start, block, .. }) = BLOCKS.enclosing(granule, address) {
        return Ok(Allocation::of(start, block, Clock::now()));
    }
    // Later nobody notes what comes in its place.
    if plan::plan().is_observed() {
        match BLOCKS.tombstone_at(granule, address) {
            Some(Tombstone::Freed) => return Err(NoSite::Freed),
            Some(Tombstone::Unsampled) => return Err(NoSite::NotTracked),
            None => {}
        }
    }
    let may_be_missing = plan::has_gaps() && sys::is_readable(address) && !is_elsewhere(address);
    Err(if may_be_missing { NoSite::NotTracked } else { NoSite::NotOnHeap })
}

/// Whether this thread's stack or a static is there.
fn is_elsewhere(address: usize) -> bool {
    let is_on_stack = |StackBounds { low, high }: StackBounds| low <= address && address < high;
    let segments = || sys::modules().into_iter().flat_map(|module| module.segments);
    sys::stack_bounds().is_some_and(is_on_stack)
        || memreport::__private::as_own(|| {
            segments().any(|(low, high)| low <= address && address < high)
        })
}

/// Why it is not known where a value was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoSite {
    /// The program's allocator is not DMD's.
    NotDeclared,
    /// DMD sleeps, and never entered a block.
    Asleep,
    /// It is in no live block: on a stack, in a static, in no memory at all, or in a block that was given back while nobody observed.
    NotOnHeap,
    /// Its block was made before tracking began or while it was off, or is not in the sample. Stacks of other threads, and
    /// memory of other allocators, cannot be told from such blocks.
    NotTracked,
    /// Its block was given back while somebody observed.
    Freed,
}

impl fmt::Display for NoSite {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            NoSite::NotDeclared => {
                "nothing is tracked: the program's allocator is not DMD's; put `dmd::global_allocator!();` into its main.rs"
            }
            NoSite::Asleep => "DMD sleeps; `dmd::sites::Observer::start()` wakes it",
            NoSite::NotOnHeap => "the value is in no live block of the heap",
            NoSite::NotTracked => {
                "the block was made before tracking began or while it was off, or is not in the sample"
            }
            NoSite::Freed => "the block was given back",
        })
    }
}

impl std::error::Error for NoSite {}
