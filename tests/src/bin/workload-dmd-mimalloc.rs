//! The workload with DMD on mimalloc.

use std::error::Error;

dmd::global_allocator!(mimalloc::MiMalloc);

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    memreport_workload::run()
}
