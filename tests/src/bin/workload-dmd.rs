//! The workload with DMD, asleep or awake by `$DMD`.

use std::error::Error;

dmd::global_allocator!();

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    memreport_workload::run()
}
