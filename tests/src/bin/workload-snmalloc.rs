//! The workload on snmalloc alone.

use std::error::Error;

#[global_allocator]
static ALLOCATOR: snmalloc_rs::SnMalloc = snmalloc_rs::SnMalloc;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    memreport_workload::run()
}
