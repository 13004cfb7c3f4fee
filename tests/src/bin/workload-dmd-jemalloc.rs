//! The workload with DMD on jemalloc.

use std::error::Error;

dmd::global_allocator!(tikv_jemallocator::Jemalloc);

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    memreport_workload::run()
}
