//! The workload on mimalloc alone.

use std::error::Error;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    memreport_workload::run()
}
