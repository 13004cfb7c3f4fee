//! Single figures of this process, for telemetry: quick to ask for, without a collection.
//!
//! Each is also a report of every snapshot, under the name of its function with hyphens. What a system does not tell is an
//! error that says why, never zero.
//!
//! ```
//! memreport::global_allocator!();
//!
//! fn main() -> Result<(), memreport::distinguished::Unavailable> {
//!     let blocks = vec![1_u8; 1000];
//!     assert!(memreport::distinguished::heap_allocated()? >= 1000);
//! #   if cfg!(target_os = "linux") {
//!     println!("{} bytes are resident", memreport::distinguished::resident_fast()?);
//! #   }
//!     drop(blocks);
//!     Ok(())
//! }
//! ```

use crate::allocator::declaration::{heap_counters, statistics};
use crate::process;

pub use super::unavailable::Unavailable;

/// Address space, used or not, in bytes.
///
/// # Errors
///
/// Where there is no `/proc/self/statm`.
pub fn vsize() -> Result<u64, Unavailable> {
    Ok(process::statm()?.0)
}

/// Memory in physical memory, shared pages included, in bytes: a figure that the kernel keeps ready.
///
/// # Errors
///
/// Where there is no `/proc/self/statm`.
pub fn resident_fast() -> Result<u64, Unavailable> {
    Ok(process::statm()?.1)
}

/// The same as [`resident_fast`] on Linux; apart from it on systems where the exact figure takes time.
///
/// # Errors
///
/// Where there is no `/proc/self/statm`.
pub fn resident() -> Result<u64, Unavailable> {
    resident_fast()
}

/// The most bytes that were ever resident.
///
/// # Errors
///
/// Where there is no `/proc/self/status`.
pub fn resident_peak() -> Result<u64, Unavailable> {
    process::peak()
}

/// Resident bytes that no other process shares. The kernel walks the page tables for it: microseconds for each megabyte.
///
/// # Errors
///
/// Where there is no `/proc/self/smaps_rollup`.
pub fn resident_unique() -> Result<u64, Unavailable> {
    Ok(process::rollup()?.unique)
}

/// Resident bytes, each shared page divided by the processes that share it. As slow as [`resident_unique`].
///
/// # Errors
///
/// Where there is no `/proc/self/smaps_rollup`.
pub fn pss() -> Result<u64, Unavailable> {
    Ok(process::rollup()?.pss)
}

/// Bytes that were written to swap. As slow as [`resident_unique`].
///
/// # Errors
///
/// Where there is no `/proc/self/smaps_rollup`.
pub fn swap() -> Result<u64, Unavailable> {
    Ok(process::rollup()?.swap)
}

/// Page faults since the process began that were served without reading from disk.
///
/// # Errors
///
/// Where there is no `/proc/self/stat`.
pub fn page_faults_soft() -> Result<u64, Unavailable> {
    Ok(process::faults()?.soft)
}

/// Page faults since the process began that had to read from disk.
///
/// # Errors
///
/// Where there is no `/proc/self/stat`.
pub fn page_faults_hard() -> Result<u64, Unavailable> {
    Ok(process::faults()?.hard)
}

/// Usable bytes in blocks that the heap allocator has handed out.
///
/// # Errors
///
/// Where no allocator is declared.
pub fn heap_allocated() -> Result<u64, Unavailable> {
    Ok(heap_counters().ok_or(Unavailable::NoAllocator)?.live_bytes())
}

/// Bytes that the program's allocator has of the operating system and has not given back. Of glibc, that includes the blocks of
/// code that is not Rust's. The allocator counts: microseconds as a rule, with glibc milliseconds in a heap of many holes.
///
/// # Errors
///
/// Where no allocator is declared, or it cannot say.
pub fn heap_committed() -> Result<u64, Unavailable> {
    heap_allocated()?;
    Ok(statistics().ok_or(Unavailable::NoStatistics)?.committed)
}

/// Of the heap memory of the program's blocks and the allocator's overhead, the overhead, in hundredths of a percent. As slow
/// as [`heap_committed`].
///
/// # Errors
///
/// Where no allocator is declared, or it cannot say.
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
        assert!(resident_peak().unwrap() >= pss().unwrap());
        assert!(page_faults_soft().unwrap() > 0);
        assert!(page_faults_hard().is_ok() && swap().is_ok());
    }

    #[test]
    fn what_nobody_counts_is_an_error_with_a_remedy() {
        let message = heap_allocated().unwrap_err().to_string();
        assert_eq!(message, "no allocator is declared; write `memreport::global_allocator!();`");
        assert!(matches!(heap_committed(), Err(Unavailable::NoAllocator)));
        assert!(matches!(heap_overhead_fraction(), Err(Unavailable::NoAllocator)));
    }
}
