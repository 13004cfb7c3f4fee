//! The workload on heapscope, which records every block.

use std::error::Error;

#[global_allocator]
static ALLOCATOR: heapscope::Alloc = heapscope::Alloc::system();

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    // The workload's time does not include the profile that is written at the end.
    let _profiler = heapscope::Profiler::new()?;
    memreport_workload::run()
}
