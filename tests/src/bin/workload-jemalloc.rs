//! The workload on jemalloc alone.

use std::error::Error;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    memreport_workload::run()
}
