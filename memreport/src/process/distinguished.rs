//! Reads single figures of this process for telemetry, quickly and without a collection.
//!
//! Each is also a report of every snapshot, under the name of its function with hyphens. A figure
//! that the system does not provide is an error with a reason, and never zero. [`register`] adds
//! figures of the program's own.
//!
//! ```
//! memreport::global_allocator!();
//!
//! fn main() -> Result<(), memreport::distinguished::Unavailable> {
//!     let blocks = vec![1_u8; 1000];
//!     assert!(memreport::distinguished::heap_allocated()? >= 1000);
//! #   if cfg!(any(target_os = "linux", target_os = "macos")) {
//!     println!("{} bytes are resident", memreport::distinguished::resident_fast()?);
//! #   }
//!     drop(blocks);
//!     Ok(())
//! }
//! ```

use crate::allocator::declaration::{heap_counters, statistics};
use crate::process;

pub use super::unavailable::Unavailable;
pub use crate::report::single_figure::{RefusedName, register, registered};

/// Returns the size of the address space in bytes, used or not.
///
/// # Errors
///
/// Fails without a readable `/proc/self/statm`; on macOS, if the kernel does not tell.
pub fn vsize() -> Result<u64, Unavailable> {
    Ok(process::sizes()?.0)
}

/// Returns the bytes in physical memory, shared pages included: a figure that the kernel maintains.
///
/// # Errors
///
/// Fails without a readable `/proc/self/statm`; on macOS, if the kernel does not tell.
pub fn resident_fast() -> Result<u64, Unavailable> {
    Ok(process::sizes()?.1)
}

/// Returns the resident bytes. On Linux, it equals [`resident_fast`].
///
/// # Errors
///
/// Fails without a readable `/proc/self/statm`; on macOS, if the kernel does not tell.
pub fn resident() -> Result<u64, Unavailable> {
    resident_fast()
}

/// Returns the high-water mark of resident bytes.
///
/// # Errors
///
/// Fails without a readable `/proc/self/status`; on macOS, if the kernel does not tell.
pub fn resident_peak() -> Result<u64, Unavailable> {
    process::peak()
}

/// Returns the resident bytes that no other process shares.
///
/// The kernel walks the page tables: microseconds for each megabyte.
///
/// # Errors
///
/// Fails without a readable `/proc/self/smaps_rollup`, which only Linux has.
pub fn resident_unique() -> Result<u64, Unavailable> {
    Ok(process::rollup()?.unique)
}

/// Returns the resident bytes, with each shared page divided by the processes that share it. As
/// slow as [`resident_unique`].
///
/// # Errors
///
/// Fails without a readable `/proc/self/smaps_rollup`, which only Linux has.
pub fn pss() -> Result<u64, Unavailable> {
    Ok(process::rollup()?.pss)
}

/// Returns the bytes written to swap. As slow as [`resident_unique`].
///
/// # Errors
///
/// Fails without a readable `/proc/self/smaps_rollup`, which only Linux has.
pub fn swap() -> Result<u64, Unavailable> {
    Ok(process::rollup()?.swap)
}

/// Returns the number of page faults since the process began that were served without reading from
/// disk.
///
/// # Errors
///
/// Fails without a readable `/proc/self/stat`; on macOS, if the kernel does not tell.
pub fn page_faults_soft() -> Result<u64, Unavailable> {
    Ok(process::faults()?.soft)
}

/// Returns the number of page faults since the process began that read from disk.
///
/// # Errors
///
/// Fails without a readable `/proc/self/stat`; on macOS, if the kernel does not tell.
pub fn page_faults_hard() -> Result<u64, Unavailable> {
    Ok(process::faults()?.hard)
}

/// Returns the usable bytes in live blocks of the heap allocator.
///
/// # Errors
///
/// Fails if no allocator is declared.
pub fn heap_allocated() -> Result<u64, Unavailable> {
    Ok(heap_counters().ok_or(Unavailable::NoAllocator)?.live_bytes())
}

/// Returns the bytes that the program's allocator has obtained from the operating system and not
/// released.
///
/// glibc's figure includes the blocks of code other than Rust. The allocator counts: microseconds
/// as a rule, with glibc milliseconds in a heap with many holes.
///
/// # Errors
///
/// Fails if no allocator is declared, or if it has no statistics.
pub fn heap_committed() -> Result<u64, Unavailable> {
    heap_allocated()?;
    Ok(statistics().ok_or(Unavailable::NoStatistics)?.committed)
}

/// Returns the share of the allocator's overhead in the heap memory of the program's blocks and the
/// overhead, in hundredths of a percent. As slow as [`heap_committed`].
///
/// # Errors
///
/// Fails if no allocator is declared, or if it has no statistics.
pub fn heap_overhead_fraction() -> Result<i64, Unavailable> {
    let counters = heap_counters().ok_or(Unavailable::NoAllocator)?;
    let statistics = statistics().ok_or(Unavailable::NoStatistics)?;
    let allocated = counters.live_bytes();
    let division = statistics.divide(allocated, counters.live_blocks());
    Ok(process::fraction(division.overhead(), allocated))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_system_tells_all_of_its_figures() {
        let resident = resident().unwrap();
        assert!(resident <= vsize().unwrap());
        assert!(resident_unique().unwrap() <= vsize().unwrap());
        // Other tests run meanwhile: the peak is read last.
        let now = pss().unwrap();
        assert!(resident_peak().unwrap() >= now);
        assert!(page_faults_soft().unwrap() > 0);
        assert!(page_faults_hard().is_ok());
        // The kernel counts in KiB.
        for figure in [swap(), pss(), resident_unique()] {
            assert_eq!(figure.unwrap() % 1024, 0);
        }
    }

    #[test]
    fn what_nobody_counts_is_an_error_with_a_remedy() {
        let message = heap_allocated().unwrap_err().to_string();
        assert_eq!(message, "no allocator is declared; write `memreport::global_allocator!();`");
        assert!(matches!(heap_committed(), Err(Unavailable::NoAllocator)));
        assert!(matches!(heap_overhead_fraction(), Err(Unavailable::NoAllocator)));
    }
}
