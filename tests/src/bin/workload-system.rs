//! The workload on the system's allocator alone.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    memreport_workload::run()
}
