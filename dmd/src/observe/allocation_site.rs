//! Finds the allocation of a value.

use std::fmt;

use super::allocation::{Allocation, Clock};
use crate::mem::sys;
use crate::mem::sys::StackBounds;
use crate::sample::plan;
use crate::table::blocks::LiveBlock;
use crate::table::packed_block::Tombstone;
use crate::table::{BLOCKS, granule, has_gaps};

/// Returns the allocation of the block that contains a value.
///
/// The value itself must be on the heap: pass `&*boxed` for the content of a box, and `&vector[0]`
/// for the elements of a vector.
///
/// ```
/// dmd::global_allocator!();
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let observer = dmd::observe::Observer::start()?;
/// let page = Box::new([0_u8; 4096]);
/// assert_eq!(dmd::allocation_site(&*page)?.requested(), 4096);
/// assert_eq!(dmd::allocation_site(&page), Err(dmd::observe::AllocationSiteError::NotOnHeap));
/// # drop(observer);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// If the value is in no tracked block. The error contains the reason.
pub fn allocation_site<T: ?Sized>(value: &T) -> Result<Allocation, AllocationSiteError> {
    allocation_site_of(std::ptr::from_ref(value))
}

/// Returns the allocation of the block that contains an address.
///
/// The address is never read, so it need not be valid.
///
/// ```
/// use dmd::observe::AllocationSiteError;
///
/// dmd::global_allocator!();
///
/// # fn main() {
/// # let _observer = dmd::observe::Observer::start().unwrap();
/// let nowhere = std::ptr::null::<u8>();
/// assert_eq!(dmd::allocation_site_of(nowhere), Err(AllocationSiteError::NotOnHeap));
/// # }
/// ```
///
/// # Errors
///
/// If the address is in no tracked block. The error contains the reason.
pub fn allocation_site_of<T: ?Sized>(address: *const T) -> Result<Allocation, AllocationSiteError> {
    let address = address.addr();
    let granule = granule().ok_or(AllocationSiteError::NotDeclared)?;
    if !plan::plan().is_awake() {
        return Err(AllocationSiteError::Asleep);
    }
    if let Some(LiveBlock { start, block, .. }) = BLOCKS.enclosing(granule, address) {
        return Ok(Allocation::of(start, block, Clock::now()));
    }
    // Tombstones are valid only while an observer is active.
    if plan::plan().is_observed() {
        match BLOCKS.tombstone_at(granule, address) {
            Some(Tombstone::Freed) => return Err(AllocationSiteError::Freed),
            Some(Tombstone::Unsampled) => return Err(AllocationSiteError::NotTracked),
            None => {}
        }
    }
    let may_be_missing = has_gaps() && sys::is_readable(address) && !is_on_stack_or_static(address);
    Err(if may_be_missing {
        AllocationSiteError::NotTracked
    } else {
        AllocationSiteError::NotOnHeap
    })
}

/// Returns whether the address is on this thread's stack or in a static.
fn is_on_stack_or_static(address: usize) -> bool {
    let is_on_stack = |StackBounds { low, high }: StackBounds| low <= address && address < high;
    let segments = || sys::modules().into_iter().flat_map(|module| module.segments);
    sys::stack_bounds().is_some_and(is_on_stack)
        || memreport::__private::as_own(|| {
            segments().any(|(low, high)| low <= address && address < high)
        })
}

/// A value has no known allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllocationSiteError {
    /// The program's allocator is not DMD's.
    NotDeclared,
    /// DMD is asleep, and has never inserted a block.
    Asleep,
    /// The value is in no live block. It is on a stack, in a static, not mapped, or in a block that
    /// was freed while no observer was active.
    NotOnHeap,
    /// The block was allocated before tracking began or while it was off, or it is not sampled.
    ///
    /// The stacks of other threads and the memory of other allocators also give this error, because
    /// they cannot be distinguished from such blocks.
    NotTracked,
    /// The block was freed while an observer was active.
    Freed,
}

impl fmt::Display for AllocationSiteError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            AllocationSiteError::NotDeclared => {
                "nothing is tracked: the program's allocator is not DMD's; put `dmd::global_allocator!();` into its main.rs"
            }
            AllocationSiteError::Asleep => "DMD sleeps; `dmd::observe::Observer::start()` wakes it",
            AllocationSiteError::NotOnHeap => "the value is in no live block of the heap",
            AllocationSiteError::NotTracked => {
                "the block was made before tracking began or while it was off, or is not in the sample"
            }
            AllocationSiteError::Freed => "the block was freed",
        })
    }
}

impl std::error::Error for AllocationSiteError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_reason_or_remedy() {
        for (error, part) in [
            (AllocationSiteError::NotDeclared, "put `dmd::global_allocator!();` into"),
            (AllocationSiteError::Asleep, "`dmd::observe::Observer::start()` wakes it"),
            (AllocationSiteError::NotOnHeap, "in no live block"),
            (AllocationSiteError::NotTracked, "before tracking began"),
            (AllocationSiteError::Freed, "was freed"),
        ] {
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
