//! The workload with DMD on snmalloc.

use std::error::Error;

dmd::global_allocator!(snmalloc_rs::SnMalloc);

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    memreport_workload::run()
}
